"""`kubectl get --watch` as a child process: every change of some objects, and when it was seen here."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from noctaya_apiserver.child import BOUND_EXEC
from noctaya_cluster import Kubectl

from noctaya_demo.place import PlaceFailed

Object = dict[str, Any]
T = TypeVar("T")
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Change:
    """An object as it has become, `at` seconds of time.monotonic()."""

    at: float
    gone: bool
    object: Object


class Watch:
    """Follows what `kubectl get <arguments>` lists, from the time of its start to `stop()`."""

    def __init__(self, kubectl: Kubectl, *arguments: str) -> None:
        self._what = " ".join(arguments)
        self._changed = threading.Condition()
        self._changes: list[Change] = []
        command = [*kubectl.prefix, "get", *arguments, "--watch", "--output-watch-events", "--output=json"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(BOUND_EXEC), str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._ended = False
        self._follower = threading.Thread(target=self._follow, name=f"watch {self._what}", daemon=True)
        self._follower.start()

    def stop(self) -> None:
        """End it."""
        with self._process:  # closes the pipes
            self._process.terminate()
            self._follower.join()

    def first(self, found: Callable[[Change], T | None], *, after: float, within: float) -> T:
        """The first result of `found` that isn't None, of the changes seen after a moment.

        Raises PlaceFailed after `within` seconds, or when kubectl ended.
        """
        deadline = time.monotonic() + within
        looked_at = 0
        with self._changed:
            while True:
                for change in self._changes[looked_at:]:
                    if change.at > after and (result := found(change)) is not None:
                        return result
                looked_at = len(self._changes)
                if self._ended:
                    raise PlaceFailed(f"the watch of {self._what} ended: {self._last_words()}")
                if (left := deadline - time.monotonic()) <= 0:
                    raise PlaceFailed(f"{self._what}: it did not happen within {within:g} s")
                self._changed.wait(min(left, 1.0))

    def _follow(self) -> None:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        for event in documents(iter(lambda: os.read(output, CHUNK), b"")):
            with self._changed:
                self._changes.append(Change(time.monotonic(), event["type"] == "DELETED", event["object"]))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        lines = self._process.stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.wait()}"


def documents(chunks: Iterator[bytes]) -> Iterator[Object]:
    """JSON documents that follow each other, each as soon as it is complete. Pure."""
    decoder = json.JSONDecoder()
    rest = b""
    for chunk in chunks:
        rest += chunk
        if not chunk.rstrip().endswith(b"}"):  # the common end of a document: don't try before
            continue
        text = rest.decode()
        while text := text.lstrip():
            try:
                document, end = decoder.raw_decode(text)
            except ValueError:  # the rest of it is still to come
                break
            yield document
            text = text[end:]
        rest = text.encode()
