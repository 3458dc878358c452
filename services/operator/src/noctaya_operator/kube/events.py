"""Telling people what happened, as events.k8s.io/v1 Events, without ever disturbing the work.

`emit` only puts a note into a bounded queue; a task writes them. The same thing said again within six minutes
becomes a series: one Event whose count is raised, at most every 30 s. What can't be written after a few
attempts is dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from noctaya_operator.kube.backoff import Backoff
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import ApiError, NotFound
from noctaya_operator.kube.objects import Object, key_of, resource_version_of, uid_of
from noctaya_operator.kube.resources import EVENTS

log = logging.getLogger(__name__)

NOTE_LIMIT = 1024
"""Bytes (validation of events.k8s.io/v1)."""
SERIES_WINDOW = 360.0
"""Seconds within which the same is a series (client-go)."""
SERIES_INTERVAL = 30.0
"""Seconds between two writes of one series."""
ATTEMPTS = 4
"""Writes of one Event before it is dropped."""
REMEMBERED = 4096
"""Series kept in memory."""


class _Same(NamedTuple):
    """What makes two events one series; every part is immutable in the API."""

    uid: str
    kind: str
    namespace: str
    name: str
    type: str
    reason: str
    action: str
    note: str


@dataclass
class _Series:
    name: str
    namespace: str
    last: float
    count: int = 1
    written: int = 0
    written_at: float = float("-inf")
    last_time: str = ""


class EventRecorder:
    """Writes Events while `run` runs.

    Args:
        client: the API server.
        controller: `reportingController`, a qualified name.
        instance: `reportingInstance`, which process it was.
        now: wall clock.
        rng: randomness for retry jitter.
        queue_size: notes waiting to be written; more are dropped.
        on_result: called with `written`, `failed` or `dropped` for each, for metrics.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        controller: str,
        instance: str,
        now: Callable[[], datetime] | None = None,
        rng: random.Random | None = None,
        queue_size: int = 1000,
        on_result: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance[:128]
        self._now = now or (lambda: datetime.now(UTC))
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._queue_size = queue_size
        self._on_result = on_result or (lambda result: None)
        self._series: OrderedDict[_Same, _Series] = OrderedDict()
        self._new: OrderedDict[_Same, Object] = OrderedDict()
        self._raised: set[_Same] = set()
        self._something = asyncio.Event()
        self._last_name = 0

    def emit(self, regarding: Mapping[str, Any], *, type: str, reason: str, action: str, note: str) -> None:
        """Say something about an object (as read from the server). Never raises and never waits.

        Args:
            regarding: the object.
            type: `Normal` or `Warning`.
            reason: why, for machines; CamelCase.
            action: what was being done; CamelCase.
            note: for people; cut to 1024 bytes.
        """
        try:
            self._take(regarding, type, reason[:128], action[:128], _cut(note))
        except Exception:  # an Event is never worth a failed reconcile
            log.exception("an event could not be taken")
            self._on_result("dropped")

    async def run(self) -> None:
        """Write until cancelled; what waits then is written by `flush`, if anybody calls it."""
        while True:
            await self._something.wait()
            self._something.clear()
            wait = await self._write_due()
            if wait is not None:
                try:
                    async with asyncio.timeout(wait):
                        await self._something.wait()
                except TimeoutError:
                    self._something.set()

    async def flush(self) -> None:
        """Write what waits now, series included, one attempt each."""
        while self._new:
            same, event = self._new.popitem(last=False)
            await self._create(same, event, attempts=1)
        for same in list(self._raised):
            await self._raise_count(same)

    def _take(
        self, regarding: Mapping[str, Any], event_type: str, reason: str, action: str, note: str
    ) -> None:
        clock = asyncio.get_running_loop().time()
        key = key_of(regarding)
        same = _Same(
            uid_of(regarding),
            str(regarding.get("kind") or ""),
            key.namespace,
            key.name,
            event_type,
            reason,
            action,
            note,
        )
        time = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        known = self._series.get(same)
        if known is not None and clock - known.last < SERIES_WINDOW:
            known.last, known.last_time = clock, time
            known.count += 1
            self._series.move_to_end(same)
            if same not in self._new:
                self._raised.add(same)
            self._something.set()
            return
        if len(self._new) >= self._queue_size:
            self._on_result("dropped")
            return
        series = _Series(self._name(key.name), key.namespace or "default", clock, last_time=time)
        self._series[same] = series
        self._series.move_to_end(same)
        while len(self._series) > REMEMBERED:
            forgotten, _ = self._series.popitem(last=False)
            self._raised.discard(forgotten)
        self._new[same] = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": series.namespace, "name": series.name},
            "eventTime": time,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": event_type,
            "reason": reason,
            "action": action,
            "note": note,
            "regarding": {
                "apiVersion": str(regarding.get("apiVersion") or ""),
                "kind": same.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": same.uid,
                "resourceVersion": resource_version_of(regarding),
            },
        }
        self._something.set()

    async def _write_due(self) -> float | None:
        """Write new events and due series; returns seconds until the next series is due."""
        while self._new:
            same, event = next(iter(self._new.items()))
            await self._create(same, event, attempts=ATTEMPTS)
            self._new.pop(same, None)
        clock = asyncio.get_running_loop().time
        waits: list[float] = []
        for same in list(self._raised):
            series = self._series.get(same)
            if series is None:
                self._raised.discard(same)
                continue
            wait = series.written_at + SERIES_INTERVAL - clock()
            if wait > 0:
                waits.append(wait)
            else:
                await self._raise_count(same)
        return min(waits, default=None)

    async def _create(self, same: _Same, event: Object, *, attempts: int) -> None:
        series = self._series.get(same)
        backoff = Backoff(base=0.5, cap=10.0, rng=self._rng)
        while True:
            try:
                await self._client.create(event, field_manager=self._controller)
                break
            except ApiError as error:
                wait = backoff.after_failure(at_least=error.retry_after)
                if not error.transient or backoff.failures >= attempts:
                    log.info("event %s about %s is lost: %s", event["reason"], same.name, error)
                    self._on_result("failed")
                    # Said again it is tried again as a new one.
                    self._series.pop(same, None)
                    self._raised.discard(same)
                    return
                await asyncio.sleep(min(wait, 60.0))
        self._on_result("written")
        if series is not None:
            series.written, series.written_at = 1, asyncio.get_running_loop().time()
            if series.count > 1:
                self._raised.add(same)

    async def _raise_count(self, same: _Same) -> None:
        self._raised.discard(same)
        series = self._series.get(same)
        if series is None or series.count <= series.written:
            return
        count = series.count
        body = {"series": {"count": count, "lastObservedTime": series.last_time}}
        series.written_at = asyncio.get_running_loop().time()
        try:
            await self._client.patch_merge(
                EVENTS, series.namespace, series.name, body, field_manager=self._controller
            )
        except NotFound:
            # Events live an hour; the next time it is a new one.
            self._series.pop(same, None)
            return
        except ApiError as error:
            log.info("the count of event %s about %s is not raised: %s", same.reason, same.name, error)
            self._on_result("failed")
            if error.transient:
                self._raised.add(same)
            return
        series.written = count
        self._on_result("written")

    def _name(self, about: str) -> str:
        self._last_name = max(self._last_name + 1, int(self._now().timestamp() * 1_000_000_000))
        return f"{about[:230].rstrip('.-')}.{self._last_name:x}"


def _cut(note: str) -> str:
    raw = note.encode()
    if len(raw) <= NOTE_LIMIT:
        return note
    return raw[: NOTE_LIMIT - 3].decode(errors="ignore") + "…"
