"""List once, then watch from there, for as long as the process lives.

The watch is ended by the server after a random 5 to 10 minutes, so that streams never age together, and given
up after a silence longer than the server's bookmark interval. Every failure is retried with jittered backoff
from where the watch left off; a watch that ends at once counts as a failure, so nothing the server does leads
to a hot loop. Everything is listed again when the server no longer remembers that place (410), when its
sequence turned out to be behind ours (restored from a backup: such a watch would stay silent), or when
watching keeps failing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import NamedTuple, Protocol

from noctaya_operator.kube.backoff import Backoff
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import ApiError, Gone, KindAbsent, ServerUnavailable
from noctaya_operator.kube.objects import Object, resource_version_of
from noctaya_operator.kube.resources import Resource

log = logging.getLogger(__name__)

LONGEST_WAIT = 60.0
"""Seconds; a Retry-After beyond it is not believed."""


class Timing(NamedTuple):
    """Seconds; ranges are drawn from anew each time."""

    watch: tuple[float, float] = (300.0, 600.0)
    """How long the server is asked to keep a watch open (client-go's numbers)."""
    idle: float = 100.0
    """Silence that means a dead connection; bookmarks come about every 60 s."""
    backoff: tuple[float, float] = (0.25, 30.0)
    """First and longest delay after failures."""
    unreachable: float = 5.0
    """Longest delay while the server does not answer: once it does, everybody waits for what we see."""
    absent: tuple[float, float] = (20.0, 40.0)
    """Until a kind that is not served is looked for again; under a minute even when the answer is slow."""
    steady: float = 5.0
    """A watch that lived this long was a success, however it ended."""
    watch_attempts: int = 4
    """Watches in a row that fail without an event before everything is listed anew."""


class Sink(Protocol):
    """Where objects go."""

    def kept(self, obj: Object) -> Object | None:
        """What to keep of an object of a list, None for nothing."""

    def listed(self, items: list[Object]) -> None:
        """Everything there is, as kept."""

    def changed(self, event_type: str, obj: Object) -> None:
        """One event: ADDED, MODIFIED or DELETED."""

    def vanished(self) -> None:
        """The server does not serve the kind."""

    def failed(self, error: ApiError) -> None:
        """The server refused or was not reached; it is asked again."""


class ListWatch:
    """One stream of one kind, in one namespace or all.

    Args:
        client: the API server.
        resource: the kind.
        namespace: None for all.
        sink: gets lists and events.
        rng: randomness for jitter.
        timing: how long things take.
        label_selector: only matching objects.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        *,
        namespace: str | None,
        sink: Sink,
        rng: random.Random,
        timing: Timing,
        label_selector: str | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._sink = sink
        self._rng = rng
        self._timing = timing
        self._label_selector = label_selector
        first, longest = timing.backoff
        self._backoff = Backoff(base=first, cap=longest, rng=rng)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        while True:
            try:
                page = await self._client.list_all(
                    self._resource,
                    self._namespace,
                    label_selector=self._label_selector,
                    keep=self._sink.kept,
                )
                self._sink.listed(page.items)
                await self._follow(page.resource_version)
            except KindAbsent:
                self._sink.vanished()
                self._backoff.reset()
                await asyncio.sleep(self._rng.uniform(*self._timing.absent))
            except ApiError as error:
                await self._pause(error)

    async def _follow(self, version: str) -> None:
        """Watch from `version`; returns when everything has to be listed again. Raises `KindAbsent`."""
        clock: Callable[[], float] = asyncio.get_running_loop().time
        attempts = 0
        while True:
            began, start, error = clock(), version, None
            try:
                events = self._client.watch(
                    self._resource,
                    self._namespace,
                    resource_version=version,
                    label_selector=self._label_selector,
                    seconds=self._rng.uniform(*self._timing.watch),
                    idle_timeout=self._timing.idle,
                )
                async with aclosing(events):
                    async for event in events:
                        if event.get("type") in {"ADDED", "MODIFIED", "DELETED"}:
                            self._sink.changed(event["type"], event["object"])
                        version = resource_version_of(event["object"]) or version
            except KindAbsent:
                raise
            except ApiError as failure:
                error = failure
            if version != start or clock() - began >= self._timing.steady:
                self._backoff.reset()
                attempts = 0
                if error is None:
                    continue
            attempts += 1
            await self._pause(error)
            if isinstance(error, Gone) or attempts >= self._timing.watch_attempts:
                return
            if error is not None and await self._server_is_behind(version):
                log.warning("%s: the server's history is behind ours, listing again", self._resource)
                return

    async def _pause(self, error: ApiError | None) -> None:
        if error is not None:
            self._sink.failed(error)
            level = logging.WARNING if self._backoff.failures == 0 else logging.DEBUG
            log.log(level, "%s in %s: %s", self._resource, self._namespace or "all namespaces", error)
        asked = min(error.retry_after, LONGEST_WAIT) if error is not None and error.retry_after else None
        wait = self._backoff.after_failure(at_least=asked)
        if isinstance(error, ServerUnavailable) and error.status == 0:
            wait = min(wait, self._timing.unreachable * self._rng.uniform(0.5, 1.0))
        await asyncio.sleep(wait)

    async def _server_is_behind(self, version: str) -> bool:
        try:
            page = await self._client.list(
                self._resource, self._namespace, label_selector=self._label_selector, limit=1
            )
        except KindAbsent:
            raise
        except ApiError as error:
            self._sink.failed(error)
            return False
        theirs = page.resource_version
        return theirs.isdigit() and version.isdigit() and int(theirs) < int(version)
