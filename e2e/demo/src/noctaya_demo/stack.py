"""`noctaya run` as a child process, watched through its `--events` file and the process table."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
from noctaya_cli.guard import PR_SET_PDEATHSIG, prctl

from noctaya_demo.place import Marks, PlaceFailed

MODEL_PROGRAM = "noctaya-llamacpp"
POLL = 0.02
STOP_TIMEOUT = 60.0
MARK_WITHIN = 5.0
"""Events are written at once; a busy machine may take its time."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the events file; `at` is seconds of time.monotonic(), the same clock in every process."""

    kind: str
    at: float
    details: dict[str, Any]


class Stack:
    """A running `noctaya run` of `manifests`, as a `Place`; output goes to `directory`."""

    noun = "model process"
    zero_within = 90.0

    def __init__(self, manifests: Path, *, models: Path, directory: Path, port: int) -> None:
        self._events_file = directory / "events.jsonl"
        self._output = directory / "noctaya.log"
        command = [
            str(Path(sys.executable).with_name("noctaya")),
            "run",
            str(manifests),
            *("--volume", f"models={models}"),
            *("--port", str(port)),
            *("--events", str(self._events_file)),
            # Demand lasts 15 s beyond a start, for clients that retry. None does here.
            *("--gateway-env", "NOCTAYA_READY_GRACE=2s"),
        ]
        with self._output.open("wb") as output:
            self.process = psutil.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends it in order
                preexec_fn=end_with(os.getpid()),
            )

    def events(self) -> list[Event]:
        """Everything that has happened so far."""
        try:
            lines = self._events_file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        records = [json.loads(line) for line in lines]
        return [Event(record["event"], record["monotonic"], record) for record in records]

    def wait_for(self, kind: str, *, after: float = 0.0, within: float) -> Event:
        """The first event of a kind that happened after a moment; raises PlaceFailed when it doesn't come."""

        def found() -> Event | None:
            return next((event for event in self.events() if event.kind == kind and event.at > after), None)

        return self.wait_until(found, what=kind, within=within)

    def wait_until(self, probe: Callable[[], T | None], *, what: str, within: float) -> T:
        """The first result of `probe` that isn't None."""
        deadline = time.monotonic() + within
        while (result := probe()) is None:
            if self.process.poll() is not None:
                raise PlaceFailed(
                    f"noctaya run ended with exit code {self.process.returncode}: {self.last_words()}"
                )
            if time.monotonic() > deadline:
                raise PlaceFailed(f"no {what} within {within:g} s: {self.last_words()}")
            time.sleep(POLL)
        return result

    def running(self) -> str | None:
        """A model process, with its id; None when there is none."""
        found = self.model_processes()
        return f"a model process (pid {found[0]})" if found else None

    def marks(self, *, after: float) -> Marks:
        """The start of a model process, by the events of `noctaya run`."""
        return [
            (name, self.wait_for(kind, after=after, within=MARK_WITHIN).at)
            for kind, name in (
                ("activated", "activated"),
                ("process_started", "process started"),
                ("replica_ready", "ready"),
            )
        ]

    def backend_port(self) -> int:
        """Port of the model server that runs, on loopback."""
        return int(self.wait_for("process_started", within=MARK_WITHIN).details["port"])

    def wait_for_zero(self, *, after: float, within: float) -> None:
        """Return when a model process has gone."""
        self.wait_for("replica_gone", after=after, within=within)

    def stay(self) -> None:
        """Stay until Ctrl-C; raises PlaceFailed when it ends on its own."""
        try:
            code = self.process.wait()
        except KeyboardInterrupt:
            return
        raise PlaceFailed(f"noctaya run ended with exit code {code}: {self.last_words()}")

    def last_words(self) -> str:
        """The last line that `noctaya run` printed."""
        lines = self._output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else f"nothing was printed, see {self._output}"

    def processes(self) -> list[psutil.Process]:
        """Every process below `noctaya run`, itself included."""
        try:
            return [self.process, *self.process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def model_processes(self) -> list[int]:
        """Process ids of model servers that run now."""
        found = []
        for process in self.processes():
            try:
                words = process.cmdline()
            except psutil.Error:
                continue
            # The guard has the command among its own arguments; the server has it as its program.
            if any(Path(word).name == MODEL_PROGRAM for word in words[:2]):
                found.append(process.pid)
        return found

    def stop(self) -> list[psutil.Process]:
        """End it in order; returns processes that are still there afterwards (none, when all is well)."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                number, signal.SIG_IGN
            )  # this is the end already; a second Ctrl-C must not spoil it
        family = self.processes()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT)
            except psutil.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        _, alive = psutil.wait_procs(
            [process for process in family if process is not self.process], timeout=10
        )
        return alive


def end_with(parent: int) -> Callable[[], None]:
    """What a child does before it becomes its program: have the kernel send it SIGTERM when `parent` dies."""

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # dead already, before the kernel was asked
            os.kill(os.getpid(), signal.SIGTERM)

    return prepare
