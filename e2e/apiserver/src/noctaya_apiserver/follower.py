"""A thread that is shown every object of a kind, and again whenever it changes: half a controller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import httpx

from .client import ApiClient, Object, Refused

PAUSE: Final = 0.1
WATCH_SECONDS: Final = 1
PASSING: Final = frozenset({404, 409, 410, 429, 500, 503})
"""The object moved on, the kind is not there (yet), or the server is starting."""


class Follower:
    """Calls `seen` with each object as it is and as it becomes, on a thread of its own.

    A passing refusal of what `seen` wants is left to the next change of the object; any other error ends the
    thread and is raised by `stop`.

    Args:
        client: for the thread alone.
        path: collection to follow.
        seen: called with the object; not called for deleted ones.
    """

    def __init__(self, client: ApiClient, path: str, seen: Callable[[Object], None]) -> None:
        self._client = client
        self._path = path
        self._seen = seen
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"follow {path}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def check(self) -> None:
        """Raises what ended it."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End; raises what ended it before."""
        self._stopping.set()
        self._thread.join(WATCH_SECONDS + 10)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        version = ""
        while not self._stopping.is_set():
            try:
                version = self._follow(version) if version else self._list()
            except httpx.TransportError:  # the server restarts
                time.sleep(PAUSE)
            except Refused as error:
                if error.status not in PASSING:
                    self._error = error
                    return
                version = ""
                time.sleep(PAUSE)
            except Exception as error:  # noqa: BLE001  whatever it is belongs to the thread that waits for us
                self._error = error
                return

    def _list(self) -> str:
        found = self._client.get(self._path)
        for item in found["items"]:
            self._show(item)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> str:
        """Follow from a version until the server ends the watch; returns the version to go on from."""
        with self._client.watch(self._path, seconds=WATCH_SECONDS, resourceVersion=version) as events:
            for event in events:
                if event["type"] == "ERROR":
                    return ""
                if event["type"] in {"ADDED", "MODIFIED"}:
                    self._show(event["object"])
                version = str(event["object"]["metadata"]["resourceVersion"])
                if self._stopping.is_set():
                    break
        return version

    def _show(self, obj: Object) -> None:
        try:
            self._seen(obj)
        except Refused as error:
            if error.status not in PASSING:
                raise
