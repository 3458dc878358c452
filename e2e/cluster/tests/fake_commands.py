"""Commands that are recorded instead of run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from noctaya_cluster.errors import ClusterError

Answer = str | tuple[int, str] | Exception


class FakeCommands:
    """Answers by the beginning of the command line; everything unknown succeeds and says nothing."""

    def __init__(self, **_: object) -> None:
        self.asked: list[list[str]] = []
        self.given: dict[str, str] = {}
        self._answers: list[tuple[Callable[[str], bool], Answer]] = []

    def answer(self, containing: str, answer: Answer) -> None:
        """What a command whose words contain this says; later answers win."""
        self._answers.insert(0, (lambda line: containing in line, answer))

    def __call__(
        self, argv: Sequence[str], *, stdin: str | None = None, timeout: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """Record and answer."""
        self.asked.append(list(argv))
        line = " ".join(argv)
        if stdin is not None:
            self.given[line] = stdin
        found = next((answer for matches, answer in self._answers if matches(line)), "")
        if isinstance(found, Exception):
            raise found
        code, text = (0, found) if isinstance(found, str) else found
        return subprocess.CompletedProcess(list(argv), code, text if code == 0 else "", text if code else "")

    def lines(self, *containing: str) -> list[str]:
        """The command lines with all these words, in order."""
        lines = [" ".join(argv) for argv in self.asked]
        return [line for line in lines if all(word in line for word in containing)]


def missing(program: str) -> ClusterError:
    """As a program that is not installed."""
    return ClusterError(f"{program} is not installed")
