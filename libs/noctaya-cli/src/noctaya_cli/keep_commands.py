"""Commands that keep a service of a cluster awake or asleep: `wake`, `pin`, `unpin`, `sleep`.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not reached within `--timeout`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noctaya_cli.cluster.access import connect
from noctaya_cli.cluster_commands import (
    Context,
    Format,
    Kubeconfig,
    Namespace,
    Output,
    Service,
    show,
    show_json,
    told,
)
from noctaya_cli.complaint import complain

if TYPE_CHECKING:
    from noctaya_cli.cluster.keeping import Decide

TIME_IS_UP = 3
"""Exit code when waiting took too long: what was asked for holds on all the same."""
LONGEST = 10 * 365 * 86400.0
"""Seconds; what is longer is meant to be for ever."""

Lasts = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="For how long, as in 45m or 8h.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the service is so, and tell how it goes.")]
Timeout = Annotated[str, typer.Option("--timeout", metavar="DURATION", help="How long --wait waits.")]


def wake(  # noqa: PLR0917 - typer turns parameters into options
    service: Service,
    lasts: Lasts = None,
    wait: Wait = False,
    timeout: Timeout = "15m",
    namespace: Namespace = None,
    output: Output = Format.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Bring a service up without a request, for as long as one would, or for --for; ends a sleep too."""
    from noctaya_cli.cluster import keeping  # noqa: PLC0415

    with told():
        decide = keeping.wake(_seconds(lasts, "--for"))
        target = (namespace, kubeconfig, context)
        _carry_out(service, decide, wait=wait, timeout=timeout, target=target, output=output)


def pin(  # noqa: PLR0917
    service: Service,
    replicas: Annotated[int, typer.Option("--replicas", min=1, help="Replicas that run at least.")] = 1,
    lasts: Lasts = None,
    wait: Wait = False,
    timeout: Timeout = "15m",
    namespace: Namespace = None,
    output: Output = Format.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Keep replicas of a service up without demand, until `noctaya unpin` or for --for."""
    from noctaya_cli.cluster import keeping  # noqa: PLC0415

    with told():
        decide = keeping.pin(replicas, _seconds(lasts, "--for"))
        target = (namespace, kubeconfig, context)
        _carry_out(service, decide, wait=wait, timeout=timeout, target=target, output=output)


def unpin(
    service: Service,
    namespace: Namespace = None,
    output: Output = Format.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Let demand decide again: ends what `wake`, `pin` or `sleep` asked for."""
    from noctaya_cli.cluster import keeping  # noqa: PLC0415

    with told():
        target = (namespace, kubeconfig, context)
        _carry_out(service, keeping.unpin, wait=False, timeout="1s", target=target, output=output)


def sleep(  # noqa: PLR0917
    service: Service,
    lasts: Lasts = None,
    wait: Wait = False,
    timeout: Timeout = "15m",
    namespace: Namespace = None,
    output: Output = Format.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Stop all replicas of a service, after the requests in flight, and refuse new ones until it is woken."""
    from noctaya_cli.cluster import keeping  # noqa: PLC0415

    with told():
        decide = keeping.sleep(_seconds(lasts, "--for"))
        target = (namespace, kubeconfig, context)
        _carry_out(service, decide, wait=wait, timeout=timeout, target=target, output=output)


def _carry_out(
    service: str,
    decide: Decide,
    *,
    wait: bool,
    timeout: str,
    target: tuple[str | None, Path | None, str | None],
    output: Format,
) -> None:
    from noctaya_cli.cluster import keeping  # noqa: PLC0415

    namespace, kubeconfig, context = target
    seconds = _seconds(timeout, "--timeout") or 0.0
    cluster = connect(kubeconfig, context)
    outcome = keeping.change(cluster, namespace or cluster.namespace, service, decide)
    text = output is Format.TEXT
    if text:
        show([keeping.sentence(outcome)])
    reached: bool | None = None
    late = ""
    if wait:
        begun = time.monotonic()
        try:
            for line in keeping.follow(
                cluster, outcome, timeout=seconds, clock=time.monotonic, pause=time.sleep
            ):
                if text:
                    show([f"  {time.monotonic() - begun:5.1f} s  {line}"])
            reached = True
        except keeping.TimeIsUp as error:
            reached, late = False, str(error)
    if not text:
        show_json(keeping.json_of(outcome, reached=reached))
    if late:
        complain(late)
        raise typer.Exit(TIME_IS_UP)


def _seconds(text: str | None, option: str) -> float | None:
    """A duration of the command line in seconds; None when none was given."""
    from noctaya_api.duration import parse_duration  # noqa: PLC0415

    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from error
    if not 0 < seconds <= LONGEST:
        raise typer.BadParameter(f"{option}: {text} is not a time above 0s and at most ten years")
    return seconds


COMMANDS: dict[Callable[..., None], str] = {
    wake: "Bring a service up without a request.",
    pin: "Keep replicas up without demand.",
    unpin: "Let demand decide again.",
    sleep: "Stop a service; refuse requests until it is woken.",
}
"""Each with a line for the list of commands."""
