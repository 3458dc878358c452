"""Commands for clusters: `status`, `explain`, `doctor`, `top`."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from noctaya_cli.cluster.access import ClusterError, NotAllowed, connect
from noctaya_cli.cluster.naming import NotAName, namespace_name, service_name
from noctaya_cli.complaint import fail
from noctaya_cli.ending import OrderlyEnd

MIN_WIDTH = 36
"""Columns; what is narrower is wrapped by the terminal."""
OBSERVER = "noctaya-observer"
INTERRUPTED = 130
"""Exit code of Ctrl-C, as shells have it."""


def number(value: float) -> float:
    """A number as typer calls it; `nan` passes for one, and for one within any bounds."""
    if math.isnan(value):
        raise typer.BadParameter("nan is no number of seconds")
    return value


class Format(StrEnum):
    """How a command answers."""

    TEXT = "text"
    JSON = "json"


class Picture(StrEnum):
    """How `explain` answers."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"


Kubeconfig = Annotated[
    Path | None, typer.Option("--kubeconfig", metavar="FILE", help="Instead of KUBECONFIG or ~/.kube/config.")
]
Context = Annotated[str | None, typer.Option("--context", help="A context of the kubeconfig.")]


def named(check: Callable[[str], str | None]) -> Callable[[str | None], str | None]:
    """A check of a name as typer calls it: what is no name is wrong usage."""

    def checked(text: str | None) -> str | None:
        try:
            return None if text is None else check(text)
        except NotAName as error:
            raise typer.BadParameter(str(error)) from error

    return checked


Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Instead of the namespace of the context.", callback=named(namespace_name)
    ),
]
Service = Annotated[
    str,
    typer.Argument(metavar="SERVICE", help="Name of an LLMService.", callback=named(service_name)),
]
Everywhere = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Services of every namespace.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="For people or for programs.")]


def status(
    everywhere: Everywhere = False,
    namespace: Namespace = None,
    output: Output = Format.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the services of a cluster, those with a problem first."""
    from noctaya_cli.cluster.absent import elsewhere  # noqa: PLC0415
    from noctaya_cli.cluster.status import draw_fleet, json_of, read_fleet  # noqa: PLC0415

    with told(role=OBSERVER):
        cluster = connect(kubeconfig, context)
        wanted = None if everywhere else namespace or cluster.namespace
        fleet = read_fleet(cluster, wanted)
        now = datetime.now(UTC)
        if output is Format.JSON:
            show_json(json_of(fleet, now=now))
            return
        if not fleet.services:
            where = "this cluster" if everywhere else f"namespace {wanted}"
            hint = "" if everywhere else elsewhere(cluster)
            show([f"There is no LLMService in {where}.{hint}"])
            return
        show(draw_fleet(fleet, now=now, everywhere=everywhere, width=terminal_width()))
        if fleet.remark:
            show([f"({fleet.remark})"], err=True)


def explain(
    service: Service,
    namespace: Namespace = None,
    output: Annotated[
        Picture, typer.Option("--output", "-o", help="Text, JSON, or the last cold starts as SVG.")
    ] = Picture.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Tell where the last cold starts spent their time, what is wrong now, and what to do."""
    from noctaya_cli.cluster import explain as page  # noqa: PLC0415

    with told(role=OBSERVER):
        cluster = connect(kubeconfig, context)
        found = page.explain(cluster, namespace or cluster.namespace, service, now=datetime.now(UTC))
        if output is Picture.JSON:
            show_json(page.json_of(found))
        elif output is Picture.SVG:
            if (drawn := page.svg_of(found)) is None:
                raise ClusterError(f"no cold start of {service} is on record")
            typer.echo(drawn, nl=False)
        else:
            show(page.draw_explanation(found, width=terminal_width() or 100))


def doctor(output: Output = Format.TEXT, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Examine a cluster and say what to do about what is wrong; a problem gives exit code 1."""
    from noctaya_cli.cluster.doctor import draw_finding, examine, json_of, summary  # noqa: PLC0415
    from noctaya_cli.cluster.finding import Level  # noqa: PLC0415

    with told():
        cluster = connect(kubeconfig, context)
        findings = []
        for finding in examine(cluster, now=datetime.now(UTC)):
            findings.append(finding)
            if output is Format.TEXT:
                show(draw_finding(finding, width=terminal_width() or 100))
        if output is Format.JSON:
            show_json(json_of(findings))
        else:
            typer.echo(f"\n{summary(findings)}")
    if any(each.level is Level.PROBLEM for each in findings):
        raise typer.Exit(1)


def top(
    everywhere: Everywhere = False,
    namespace: Namespace = None,
    interval: Annotated[
        float, typer.Option(min=0.5, max=3600, help="Seconds between two looks.", callback=number)
    ] = 2.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Watch the services of a cluster until Ctrl-C."""
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from noctaya_cli.cluster.status import draw_fleet, read_fleet  # noqa: PLC0415
    from noctaya_cli.terminal import plain  # noqa: PLC0415

    with told(role=OBSERVER):
        cluster = connect(kubeconfig, context)
        wanted = None if everywhere else namespace or cluster.namespace
        if not sys.stdout.isatty():
            raise ClusterError("top needs a terminal; `noctaya status -o json` is for programs")
        try:
            fleet, seen, silence = read_fleet(cluster, wanted), datetime.now(UTC), ""
            with Live(auto_refresh=False, screen=True) as live:
                while True:
                    width = terminal_width()
                    count = f"{len(fleet.services)} service{'s' if len(fleet.services) != 1 else ''}"
                    lines = [f"{seen.astimezone():%H:%M:%S}  {cluster.name}  {count}", ""]
                    lines += draw_fleet(fleet, now=seen, everywhere=everywhere, width=width)
                    for remark in filter(None, (fleet.remark, silence)):
                        lines += ["", *textwrap.wrap(f"({remark})", width=width or MIN_WIDTH)]
                    live.update(Text("\n".join(map(plain, lines)), no_wrap=True), refresh=True)
                    time.sleep(interval)
                    try:
                        fleet, seen, silence = read_fleet(cluster, wanted), datetime.now(UTC), ""
                    except ClusterError as error:
                        silence = f"as it was at that time; since then: {error}"
        except KeyboardInterrupt:
            return


def terminal_width() -> int | None:
    """Columns of the terminal; None when the output goes elsewhere."""
    if not sys.stdout.isatty():
        return None
    return max(MIN_WIDTH, shutil.get_terminal_size().columns)


def show(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines that may hold whatever somebody wrote into a message."""
    from noctaya_api.manifests import printable  # noqa: PLC0415

    for line in lines:
        typer.echo(printable(line), err=err)


def show_json(value: object) -> None:
    """Print for a program."""
    from noctaya_cli.terminal import json_text  # noqa: PLC0415

    typer.echo(json_text(value))


class told:  # noqa: N801 - reads as the word it is: `with told():`
    """Tells a ClusterError in a line and ends with exit code 1, after Ctrl-C silently with 130.

    `role` of examples/security/roles is named where it would have helped.
    """

    def __init__(self, *, role: str = "") -> None:
        self._role = role
        self._signals = OrderlyEnd()

    def __enter__(self) -> None:
        self._signals.__enter__()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._signals.__exit__()
        if isinstance(error, ClusterError):
            helps = self._role and isinstance(error, NotAllowed)
            fail(f"{error}; the role {self._role} may (examples/security/roles)" if helps else str(error))
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(INTERRUPTED) from error


COMMANDS: dict[Callable[..., None], str] = {
    status: "Services of a cluster, those with a problem first.",
    explain: "Why a service was slow, what is wrong, what to do.",
    doctor: "Examine a cluster: what is wrong, what to do.",
    top: "Watch services live.",
}
"""Each with a line for the list of commands."""
