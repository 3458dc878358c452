"""How a run is shown: a live picture on a terminal, plain lines with times everywhere else."""

import asyncio
import io
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from noctaya_cli.events import Event, EventKind
from noctaya_cli.sentences import describe, describe_activation
from noctaya_cli.status import Phase, ServiceStatus
from noctaya_cli.terminal import plain
from noctaya_cli.timeline import Activation, Mark, TimelineRecorder

REFRESH = 0.25
RECENT = 6
STYLE = {
    Phase.READY: ("●", "bold green"),
    Phase.LOADING: ("◐", "bold yellow"),
    Phase.SCALED_TO_ZERO: ("○", "cyan"),
    Phase.PENDING: ("◌", "dim"),
    Phase.DEGRADED: ("✖", "bold red"),
}
MARK_STYLE = {
    Mark.REQUESTED: "white",
    Mark.ACTIVATED: "cyan",
    Mark.PROCESS_STARTED: "yellow",
    Mark.READY: "green",
    Mark.FIRST_BYTE: "magenta",
}


class PlainLines:
    """Subscriber of the event log that writes one line per event, and one per cold start."""

    def __init__(self, out: TextIO, *, timelines: TimelineRecorder) -> None:
        self._out = out
        self._timelines = timelines
        self._told: dict[str, Activation] = {}

    def __call__(self, event: Event) -> None:
        """Write one event, if it says something to people."""
        sentence = describe(event)
        if sentence is not None:
            self.line(event.service, sentence, wall=event.wall)
        activation = self._timelines.last(event.service)
        told = self._told.get(event.service)
        if event.kind is EventKind.FIRST_BYTE and activation is not None and activation is not told:
            self._told[event.service] = activation  # a gateway that is restarted has first bytes of its own
            self.line(event.service, describe_activation(activation))

    def line(self, source: str, text: str, *, wall: float | None = None) -> None:
        """Write a line of a service or of a process."""
        moment = time.time() if wall is None else wall
        clock = time.strftime("%H:%M:%S", time.localtime(moment))
        try:
            self._out.write(f"{clock}.{int(moment * 1000) % 1000:03d} {source}: {plain(text)}\n")
            self._out.flush()
        except OSError:  # whoever read it is gone, which is no reason to end the services
            self._out = io.StringIO()


class LiveView:
    """Subscriber of the event log that keeps a picture of all services on the terminal."""

    def __init__(
        self, console: Console, *, statuses: Callable[[], list[ServiceStatus]], directory: Path
    ) -> None:
        self._console = console
        self._statuses = statuses
        self._directory = directory
        self._recent: deque[tuple[float, str, str]] = deque(maxlen=RECENT)
        self.closing = ""

    def __call__(self, event: Event) -> None:
        """Remember one event for the list of recent ones."""
        sentence = describe(event)
        if sentence is not None:
            self._recent.append((event.wall, event.service, plain(sentence)))

    def line(self, source: str, text: str) -> None:
        """Print a line of a process above the picture."""
        self._console.print(Text(f"{source}: ", style="dim").append(plain(text)))

    async def run(self) -> None:
        """Draw until cancelled; the last picture stays on the screen."""
        with Live(
            console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live:
            try:
                while True:
                    live.update(self.picture(), refresh=True)
                    await asyncio.sleep(REFRESH)
            finally:
                live.update(self.picture(), refresh=True)

    def picture(self) -> RenderableType:
        """The whole picture of this moment."""
        parts: list[RenderableType] = []
        for status in self._statuses():
            parts += [render_service(status, now=time.monotonic()), Text("")]
        for wall, service, sentence in self._recent:
            clock = time.strftime("%H:%M:%S", time.localtime(wall))
            parts.append(
                Text(f"{clock} {service}: {sentence}", style="dim", no_wrap=True, overflow="ellipsis")
            )
        parts.append(Text(self.closing or f"Ctrl-C ends everything · logs in {self._directory}", style="dim"))
        return Group(*parts)


def render_service(status: ServiceStatus, *, now: float) -> RenderableType:
    """One service: its state in a line, its address, and its current or last cold start."""
    sign, style = STYLE[status.phase]
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(f"{sign} {status.name}", style=style).append(f"  {status.phase}", style=style)
    head.append(f"  replicas {status.ready}/{status.replicas}")
    if status.maximum > 1:
        head.append(f" (max {status.maximum})", style="dim")
    if status.leaving:
        head.append(f"  leaving {status.leaving}", style="dim")
    head.append(f"  demand {unknown(status.demand)}  queue {unknown(status.pending)}")
    body: list[RenderableType] = [head, Text(f"  {status.url}", style="underline")]
    if status.reason:
        body.append(Text(f"  {plain(status.reason)}", style="red"))
    if status.activation is not None and status.activation.marks:
        body.append(render_activation(status.activation, now=now))
    return Group(*body)


def render_activation(activation: Activation, *, now: float) -> Table:
    """The steps of a cold start, each with the seconds since the request."""
    table = Table.grid(padding=(0, 1))
    steps = activation.steps()
    cells: list[RenderableType] = [
        Text(f"  cold start {activation.elapsed(now):.2f} s ", style="bold"),
    ]
    for index, (mark, since) in enumerate(steps):
        cells.append(Text(f"{'→ ' if index else ''}{mark} {since:.2f}", style=MARK_STYLE[mark]))
    if not activation.ready:
        cells.append(Text("→ …", style="dim"))
    table.add_row(*cells)
    return table


def unknown(number: int | None) -> str:
    """A number, or a dash while it isn't known."""
    return "–" if number is None else str(number)
