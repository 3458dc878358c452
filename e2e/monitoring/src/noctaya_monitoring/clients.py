"""Clients of a gateway: threads that ask again and again until they are stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx

PATH: Final = "/v1/chat/completions"


class Client:
    """One thread that sends one request after the other.

    Args:
        url: of the gateway.
        pause: seconds between two requests.
        tokens: of each answer, sent as a stream.
        patience: seconds after which it gives up and leaves.
        key: of the client; blank for none.
    """

    def __init__(
        self, url: str, *, pause: float, tokens: int = 4, patience: float = 600.0, key: str = ""
    ) -> None:
        self._url = f"{url}{PATH}?tokens={tokens}"
        self._pause = pause
        self._timeout = httpx.Timeout(patience)
        self._headers = {"x-api-key": key} if key else {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"client of {url}", daemon=True)
        self.statuses: list[int] = []
        """Of the answers so far; 0 where there was none."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def leave(self) -> None:
        """Ask no more; an answer that is on its way is cut off with the process."""
        self._stopping.set()

    def _run(self) -> None:
        with httpx.Client(trust_env=False, timeout=self._timeout, headers=self._headers) as http:
            while not self._stopping.is_set():
                self.statuses.append(self._ask(http))
                self._stopping.wait(self._pause)

    def _ask(self, http: httpx.Client) -> int:
        body = {"model": "stub", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        try:
            with http.stream("POST", self._url, json=body) as answer:
                for _ in answer.iter_raw():
                    if self._stopping.is_set():
                        break
                return answer.status_code
        except httpx.TransportError:  # it lost patience, or the gateway went
            return 0


@contextmanager
def clients(
    url: str, count: int, *, pause: float, tokens: int = 4, patience: float = 600.0, key: str = ""
) -> Iterator[list[Client]]:
    """That many clients at work."""
    found = [Client(url, pause=pause, tokens=tokens, patience=patience, key=key) for _ in range(count)]
    for each in found:
        each.start()
    try:
        yield found
    finally:
        for each in found:
            each.leave()
