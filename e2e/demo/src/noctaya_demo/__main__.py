"""`python -m noctaya_demo`: see README of the repository; exit code 0 only if every step held."""

import argparse
import signal
import sys
import time
from pathlib import Path

from openai import OpenAIError
from rich.console import Console

from noctaya_demo.place import PlaceFailed
from noctaya_demo.step import StepFailed
from noctaya_demo.story import tell
from noctaya_demo.weights import WeightsUnavailable

QUICKSTART = Path("examples") / "quickstart"
PROVIDERS = ("kind", "host", "existing")
INTERRUPTED = 130


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(
        prog="./dev demo", description="A language model woken from zero, for real."
    )
    parser.add_argument("--keep", action="store_true", help="stay up afterwards and print a curl line to try")
    parser.add_argument("--port", type=int, default=0, help="port of the endpoint; default: any free one")
    parser.add_argument("--manifests", type=Path, default=QUICKSTART, help="default: examples/quickstart")
    parser.add_argument(
        "--picture", type=Path, help="write the measured cold start as data for docs/pictures"
    )
    parser.add_argument(
        "--cluster",
        nargs="?",
        const="",
        choices=("", *PROVIDERS),
        metavar="|".join(PROVIDERS),
        help="on a Kubernetes cluster with KEDA instead of this machine alone; made here, and removed again",
    )
    parser.add_argument(
        "--yes-use-this-cluster", action="store_true", help="with --cluster existing: the cluster may be used"
    )
    options = parser.parse_args()
    if options.cluster is not None and options.picture is not None:
        parser.error("--picture draws the demo on this machine; it can't be had with --cluster")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(highlight=False)
    began = time.monotonic()
    console.print("\n  [bold]Noctaya[/bold]: a language model asleep, woken by a request, gone when idle\n")
    failures: tuple[type[Exception], ...] = (StepFailed, PlaceFailed, WeightsUnavailable, OpenAIError)
    try:
        if options.cluster is None:
            tell(
                console,
                manifests=options.manifests,
                port=options.port,
                keep=options.keep,
                picture=options.picture,
            )
        else:
            from noctaya_demo.cluster import story  # noqa: PLC0415 - with packages that `./dev demo` does without

            failures += story.FAILURES
            story.tell(
                console,
                provider=options.cluster or None,
                confirmed=options.yes_use_this_cluster,
                manifests=options.manifests,
                port=options.port,
                keep=options.keep,
            )
    except failures:
        console.print("\n  The demo stopped here; everything is shut down.\n", style="red")
        return 1
    except KeyboardInterrupt:
        console.print("\n  Interrupted; everything is stopped.\n")
        return INTERRUPTED
    console.print(f"\n  All of it held, in {time.monotonic() - began:.0f} s.\n", style="bold green")
    return 0


if __name__ == "__main__":
    sys.exit(main())
