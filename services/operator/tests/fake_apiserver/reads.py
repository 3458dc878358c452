"""Lists with paging, and watches with bookmarks, over a store."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable

from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.resources import Resource

from fake_apiserver.faults import Faults
from fake_apiserver.protocol import Answer, Asked, Object, Refused, Target, answer, status_object
from fake_apiserver.selectors import Predicate, field_predicate, label_predicate
from fake_apiserver.store import Change, Store, TooOld

MOMENT = 1e-3
"""Seconds; virtual clocks round, and a timer may fire that much early."""


class Reader:
    """Answers lists and watches.

    Args:
        store: the objects.
        faults: asked before every event whether to break the watch off.
        serves: whether a kind is served now; a watch ends when its kind goes.
        bookmark_interval: seconds between bookmarks (the real server: about a minute).
    """

    def __init__(
        self,
        store: Store,
        *,
        faults: Faults,
        serves: Callable[[Resource], bool],
        bookmark_interval: float,
    ) -> None:
        self.store = store
        self._faults = faults
        self._serves = serves
        self._bookmark_interval = bookmark_interval
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._page_number = 0

    def get(self, target: Target) -> Object | None:
        """One object."""

        return self.store.get(target.resource, Key(target.namespace, target.name))

    def list(self, target: Target, asked: Asked) -> Answer:
        """All matching objects, or a page of them; built-in kinds leave kind and apiVersion out of items."""
        token = asked.query.get("continue", "")
        if token:
            if token not in self._pages:
                raise Refused(410, "Expired", "The provided continue parameter is too old")
            version, rest = self._pages.pop(token)
        else:
            matches = _predicate(asked)
            version = self.store.version
            rest = [obj for obj in self.store.all(target.resource, target.namespace or None) if matches(obj)]
        limit = int(asked.query.get("limit") or 0)
        metadata: Object = {"resourceVersion": str(version)}
        if limit and len(rest) > limit:
            self._page_number += 1
            following = base64.b64encode(f"page-{self._page_number}".encode()).decode()
            self._pages[following] = (version, rest[limit:])
            metadata |= {"continue": following, "remainingItemCount": len(rest) - limit}
            rest = rest[:limit]
        if "." not in target.resource.group or target.resource.group.endswith(".k8s.io"):
            for item in rest:
                item.pop("apiVersion", None)
                item.pop("kind", None)
        return answer(
            200,
            {
                "kind": f"{target.resource.kind}List",
                "apiVersion": target.resource.api_version,
                "metadata": metadata,
                "items": rest,
            },
        )

    def forget_pages(self) -> None:
        """Continue tokens handed out so far are answered with 410."""
        self._pages.clear()

    async def watch(self, target: Target, asked: Asked) -> AsyncGenerator[bytes | None, None]:
        """Event lines; None where the connection is to be broken off."""
        matches = _predicate(asked)
        wanted = asked.query.get("resourceVersion") or ""
        seconds = float(asked.query.get("timeoutSeconds") or 1800)
        bookmarks = asked.query.get("allowWatchBookmarks") == "true"
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        if wanted in {"", "0"}:
            sent = self.store.version
            for obj in self.store.all(target.resource, target.namespace or None):
                if matches(obj):
                    yield _line("ADDED", obj)
        else:
            sent = int(wanted)
        next_bookmark = clock() + self._bookmark_interval
        while self._serves(target.resource):
            try:
                changes = self.store.since(sent)
            except TooOld as error:
                yield _line("ERROR", status_object(410, "Expired", str(error)))
                return
            for change in changes:
                sent = change.version
                event = _event(change, target, matches)
                if event is None:
                    continue
                if self._faults.take_cut(target.resource):
                    yield event[: max(1, len(event) // 2)]
                    yield None
                    return
                yield event
            now = clock()
            if now >= end - MOMENT:
                break
            if bookmarks and now >= next_bookmark - MOMENT:
                next_bookmark = now + self._bookmark_interval
                yield _bookmark(target.resource, max(sent, self.store.version))
            try:
                async with asyncio.timeout(max(0.0, min(end, next_bookmark) - now)):
                    if not self.store.has_since(sent):
                        await self.store.changed()
            except TimeoutError:
                continue
        if bookmarks and self._serves(target.resource):
            yield _bookmark(target.resource, max(sent, self.store.version))


def _predicate(asked: Asked) -> Predicate:
    labels = label_predicate(asked.query.get("labelSelector", ""))
    fields = field_predicate(asked.query.get("fieldSelector", ""))
    return lambda obj: labels(obj) and fields(obj)


def _event(change: Change, target: Target, matches: Predicate) -> bytes | None:
    if change.resource != target.resource:
        return None
    if target.namespace and change.key.namespace != target.namespace:
        return None
    before = change.old is not None and matches(change.old)
    after = change.new is not None and matches(change.new)
    if after and change.new is not None:
        return _line("MODIFIED" if before else "ADDED", change.new)
    if before and change.old is not None:
        last = json.loads(json.dumps(change.old))
        last.setdefault("metadata", {})["resourceVersion"] = str(change.version)
        return _line("DELETED", last)
    return None


def _line(kind: str, obj: Object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def _bookmark(resource: Resource, version: int) -> bytes:
    return _line(
        "BOOKMARK",
        {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": str(version)},
        },
    )
