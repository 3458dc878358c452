"""Warm traffic: clients that ask one thing after another until told to stop, and remember what they got."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

from noctaya_scenarios.chat import Client

TOLD: Final = 5
"""Failures that are kept with their time: the first ones show where it began."""
BODY_TOLD: Final = 200


class Traffic:
    """So many clients, each with a pause between its requests; a context manager."""

    def __init__(self, client: Client, *, clients: int = 4, pause: float = 0.1, tokens: int = 4) -> None:
        self._client, self._pause, self._tokens = client, pause, tokens
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._failures: list[str] = []
        self._longest = 0.0
        self._threads = [
            threading.Thread(target=self._run, name=f"traffic {number}", daemon=True)
            for number in range(clients)
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def stop(self, *, after: int = 0, within: float = 60.0) -> None:
        """No further request; returns when those under way have ended.

        Args:
            after: requests that shall have been answered before, in all: on a busy machine something that is
                soon over leaves no time for as many as would tell something.
            within: seconds for that, at most.
        """
        end = time.monotonic() + within
        while self._answered() < after and time.monotonic() < end:
            self._stopping.wait(self._pause)
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _answered(self) -> int:
        with self._lock:
            return self._outcomes.total()

    @property
    def outcomes(self) -> dict[str, int]:
        """How many requests had which outcome: a status, a status with a code, or the name of an error."""
        with self._lock:
            return dict(self._outcomes)

    @property
    def longest(self) -> float:
        """Seconds that the slowest answer took."""
        with self._lock:
            return self._longest

    def assert_nothing_failed(self, *, at_least: int) -> None:
        """All answers were 200, and there were enough of them for that to say something."""
        found = self.outcomes
        with self._lock:
            first = "".join(f"\n  {each}" for each in self._failures)
        assert set(found) == {"200"}, f"outcomes of warm traffic: {found}, first:{first}"
        assert found["200"] >= at_least, (
            f"only {found['200']} requests were made, the slowest took {self.longest:.1f} s"
        )

    def _run(self) -> None:
        while not self._stopping.is_set():
            begun, sent, told = time.monotonic(), datetime.now(UTC), ""
            try:
                answer = self._client.ask(tokens=self._tokens, within=60)
                outcome = f"{answer.status} {answer.code}".strip()
                if answer.status != 200:
                    told = f"request {answer.headers.get('x-request-id', '')}, {answer.body[:BODY_TOLD]!r}"
            except (OSError, http.client.HTTPException) as error:
                outcome = f"{type(error).__name__}: {error}"
            took = time.monotonic() - begun
            with self._lock:
                self._outcomes[outcome] += 1
                self._longest = max(self._longest, took)
                if outcome != "200" and len(self._failures) < TOLD:
                    self._failures.append(f"sent {sent:%H:%M:%S.%f}, {took:.1f} s later: {outcome} {told}")
            self._stopping.wait(self._pause)
