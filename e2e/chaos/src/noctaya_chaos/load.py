"""Steady mixed load: answers in one piece, streams, and cold starts, each on threads of its own.

Every request leaves one `Outcome`, so that a fault's moment can be laid beside what clients saw around it.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Literal

from noctaya_scenarios.chat import Answer, Client, Seen

Kind = Literal["json", "stream", "cold"]

OK: Final = "ok"
UNREACHED: Final = "no connection"
"""The connection was refused, reset or ended without an answer: no gateway was there to say anything."""
CUT: Final = "cut"
"""A stream that ended neither with its end nor with an error event."""
PATIENCE: Final = 120.0
PAUSE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one request came to. Times are time.monotonic()."""

    kind: Kind
    begun: float
    ended: float
    result: str
    """`OK`, `UNREACHED`, `CUT`, `status CODE ERROR`, `error event ERROR`."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.begun


def of_answer(answer: Answer) -> str:
    """The result of an answer in one piece."""
    return OK if answer.status == 200 else f"status {answer.status} {answer.code}".strip()


def of_stream(seen: Seen) -> str:
    """The result of a stream that has ended."""
    if seen.whole:
        return OK
    if not seen.status:
        return UNREACHED
    if seen.status != 200:
        return f"status {seen.status}"
    if seen.errors:
        return f"error event {seen.errors[0].get('code', '')}".strip()
    return CUT


class MixedLoad:
    """Clients of a warm service, and one who wakes another service whenever it is asleep; a context manager.

    Args:
        warm: always busy with these requests.
        cold: to be woken.
        asleep: whether the cold service is at zero; None when nobody can say.
        json_clients, stream_clients: how many of each.
        tokens: of each stream; 16 take 0.8 s with the stub.
    """

    def __init__(
        self,
        warm: Client,
        cold: Client,
        *,
        asleep: Callable[[], bool | None],
        json_clients: int = 2,
        stream_clients: int = 2,
        tokens: int = 16,
    ) -> None:
        self._warm, self._cold, self._asleep, self._tokens = warm, cold, asleep, tokens
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._outcomes: list[Outcome] = []
        work = [self._ask] * json_clients + [self._stream] * stream_clients + [self._wake]
        self._threads = [
            threading.Thread(target=self._repeat, args=(each,), name=f"load {number}", daemon=True)
            for number, each in enumerate(work)
        ]

    def __enter__(self) -> MixedLoad:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """No further request; returns when those under way have ended."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def since(self, moment: float) -> list[Outcome]:
        """Outcomes of what was under way at a moment or began after it, so far."""
        with self._lock:
            return [outcome for outcome in self._outcomes if outcome.ended >= moment]

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            work()
            self._stopping.wait(PAUSE)

    def _ask(self) -> None:
        self._record("json", lambda: of_answer(self._warm.ask(tokens=2, within=PATIENCE)))

    def _stream(self) -> None:
        self._record("stream", lambda: of_stream(self._warm.stream(tokens=self._tokens).result(PATIENCE)))

    def _wake(self) -> None:
        if self._asleep():
            self._record("cold", lambda: of_answer(self._cold.ask(tokens=2, within=PATIENCE)))
        else:
            self._stopping.wait(0.5)

    def _record(self, kind: Kind, request: Callable[[], str]) -> None:
        begun = time.monotonic()
        try:
            result = request()
        except (OSError, http.client.HTTPException):
            result = UNREACHED
        outcome = Outcome(kind=kind, begun=begun, ended=time.monotonic(), result=result)
        with self._lock:
            self._outcomes.append(outcome)
