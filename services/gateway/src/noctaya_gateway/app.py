"""`noctaya-gateway`: command line, and the process from first line to exit code."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from collections.abc import Sequence

from noctaya_api.duration import format_duration
from noctaya_api.process.lifecycle import run
from noctaya_api.process.logs import configure_logging
from noctaya_api.process.settings import environment_name
from pydantic_core import PydanticUndefined

from noctaya_gateway import __version__
from noctaya_gateway.lifecycle import serve
from noctaya_gateway.settings import GatewaySettings, load

log = logging.getLogger(__name__)

GC_THRESHOLDS = (20_000, 5, 5)
"""Cycles are collected rarely: requests and connections make none, and the defaults walk thousands of held
ones again and again, which was 40 % of the CPU of releasing them (docs/performance.md, P4)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the gateway until SIGTERM; exits 0 after a drain, 1 on a bad setting or an address in use."""
    parser = argparse.ArgumentParser(
        prog="noctaya-gateway",
        description="Gateway in front of one model server; everything is set in the environment.",
        epilog=describe_environment(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"noctaya-gateway {__version__}")
    parser.parse_args(arguments)
    settings = load()
    configure_logging(service="gateway", level=settings.log_level)
    for warning in settings.warnings():
        log.warning(warning)
    sys.exit(run(serve(settings, on_listening=_spare_the_collector)))


def _spare_the_collector() -> None:
    """What was imported and built for the start lives as long as the process: never look at it again, and
    at the rest not often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def describe_environment() -> str:
    """One line a setting: variable, default, meaning."""
    lines = ["environment:"]
    for name, field in GatewaySettings.model_fields.items():
        default = field.default
        if field.is_required():
            shown = "required"
        elif default in (None, "", (), PydanticUndefined):
            shown = "unset"
        elif isinstance(default, bool):
            shown = str(default).lower()
        elif isinstance(default, float) and name != "release_rate":
            shown = format_duration(default)
        else:
            shown = f"{default:g}" if isinstance(default, float) else str(default)
        lines.append(f"  {environment_name(GatewaySettings, name):36} {shown:10} {field.description}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
