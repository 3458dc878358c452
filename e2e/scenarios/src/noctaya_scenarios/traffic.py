"""Warm traffic: clients that ask one thing after another until told to stop, and remember what they got."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from types import TracebackType

from noctaya_scenarios.chat import Client


class Traffic:
    """So many clients, each with a pause between its requests; a context manager."""

    def __init__(self, client: Client, *, clients: int = 4, pause: float = 0.1, tokens: int = 4) -> None:
        self._client, self._pause, self._tokens = client, pause, tokens
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
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

    def stop(self) -> None:
        """No further request; returns when those under way have ended."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

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
        assert set(found) == {"200"}, f"outcomes of warm traffic: {found}"
        assert found["200"] >= at_least, f"only {found['200']} requests were made"

    def _run(self) -> None:
        while not self._stopping.is_set():
            begun = time.monotonic()
            try:
                answer = self._client.ask(tokens=self._tokens, within=60)
                outcome = f"{answer.status} {answer.code}".strip()
            except (OSError, http.client.HTTPException) as error:
                outcome = f"{type(error).__name__}: {error}"
            with self._lock:
                self._outcomes[outcome] += 1
                self._longest = max(self._longest, time.monotonic() - begun)
            self._stopping.wait(self._pause)
