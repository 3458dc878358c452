"""One line of the demo's output: a check mark, a name, what was seen, how long it took."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

NAME_WIDTH = 12


class StepFailed(Exception):
    """Something that the demo shows did not hold."""


class Step:
    """Context of one step. Prints its line when it ends, with a cross when it ends with an error."""

    def __init__(self, console: Console, name: str) -> None:
        self._console = console
        self._name = name
        self._said = ""
        self._shown = False
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = time.monotonic() - self._began
        if error is not None:
            if self._shown:
                self._console.print()
            text = line("✗", self._name, "red").append(describe(error), style="red")
        elif self._shown:
            text = Text("  ").append("✓", style="green").append(f"  {took:.1f} s", style="dim")
        else:
            text = line("✓", self._name, "green").append(self._said).append(f"  {took:.1f} s", style="dim")
        self._console.print(text, soft_wrap=True)

    def say(self, text: str) -> None:
        """What was seen, printed when the step ends."""
        self._said = text

    def report(self, text: str) -> None:
        """Progress of something that takes long, printed now on a line of its own."""
        self._console.print(Text(f"    {text}", style="dim"), soft_wrap=True)

    def show(self, text: str, *, style: str = "") -> None:
        """A part of what is seen, printed now; the line is then built up piece by piece."""
        if not self._shown:
            self._shown = True
            self._console.print(line("•", self._name, "green"), end="")
        self._console.print(Text(text, style=style), end="", soft_wrap=True)


def line(sign: str, name: str, colour: str) -> Text:
    """The beginning of a step's line."""
    return Text(f"  {sign} ", style=colour).append(f"{name:<{NAME_WIDTH}} ", style="bold default")


def describe(error: BaseException) -> str:
    """What went wrong, in words."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return str(error) or type(error).__name__
