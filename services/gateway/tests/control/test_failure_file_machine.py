"""G9: whatever is written and however late it arrives, an activation ends by what arrived after it began, and
only by that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from noctaya_gateway.failure_file import INTERVAL, FailureFile

from .clock import ManualTimers


class LateFile(RuleBasedStateMachine):
    """The operator writes an annotation, the kubelet a file, sooner or later and only where it differs."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "failure"
        self.path.write_text("")
        self.writes = 0
        self.timers = ManualTimers()
        self.annotation = ""
        self.arrived = ""
        self.since: float | None = None
        """When what is not blank arrived first in the activation that goes on."""
        self.pending = False
        self.dooms: list[str] = []
        self.file = FailureFile(self.path, timers=self.timers, on_failure=self._doomed)

    def teardown(self) -> None:
        self.file.end()
        shutil.rmtree(self.folder)

    def _doomed(self, why: str) -> None:
        assert self.pending
        assert self.since is not None, "nothing came since the activation began"
        assert why == self.arrived.strip()
        self.dooms.append(why)
        self.pending = False
        self.file.end()

    @rule(text=st.sampled_from(["", "no such image", "it keeps crashing"]))
    def tell(self, text: str) -> None:
        self.annotation = text

    @precondition(lambda self: self.annotation)
    @rule()
    def tell_again(self) -> None:
        text = self.annotation.strip()
        self.annotation = f"{text} " if self.annotation == text else text

    @rule()
    def arrive(self) -> None:
        if self.annotation == self.arrived:
            return
        new = self.folder / "new"
        new.write_text(self.annotation)
        # Clocks of file systems tick slowly, and this test does not.
        self.writes += 1
        os.utime(new, ns=(self.writes, self.writes))
        new.replace(self.path)
        self.arrived = self.annotation
        if not self.arrived:
            self.since = None
        elif self.pending and self.since is None:
            self.since = self.timers.time()

    @precondition(lambda self: not self.pending)
    @rule()
    def begin(self) -> None:
        self.pending, self.since = True, None
        self.file.begin()

    @precondition(lambda self: self.pending)
    @rule()
    def become_ready(self) -> None:
        self.pending = False
        self.file.end()

    @rule(seconds=st.floats(0.01, 3.0))
    def wait(self, seconds: float) -> None:
        self.timers.advance(seconds)

    @invariant()
    def told_in_time(self) -> None:
        if self.pending and self.since is not None:
            assert self.timers.time() - self.since <= INTERVAL

    @invariant()
    def watched_only_meanwhile(self) -> None:
        assert self.timers.armed == int(self.pending)


LateFile.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestLateFile = LateFile.TestCase
