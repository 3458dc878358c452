"""From a request to an answer: routing, verbs, faults, and the record of what was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from urllib.parse import unquote

from noctaya_operator.kube.resources import Resource

from fake_apiserver.faults import Fault, Faults
from fake_apiserver.protocol import (
    Answer,
    Asked,
    Object,
    Recorded,
    Refused,
    Stream,
    Target,
    answer,
    status_object,
    unknown_path,
)
from fake_apiserver.reads import Reader
from fake_apiserver.store import Store
from fake_apiserver.writes import Writer

MERGE_PATCHES = frozenset({"application/merge-patch+json", "application/strategic-merge-patch+json"})


class Broken(Exception):
    """The connection is to be broken without an answer."""


class Api:
    """The API over a store; knows nothing of sockets."""

    def __init__(
        self, resources: Iterable[Resource], *, history: int, bookmark_interval: float, auto_gc: bool
    ) -> None:
        self.store = Store(history=history)
        self.served: set[Resource] = set(resources)
        self.faults = Faults()
        self.writer = Writer(self.store)
        self.reader = Reader(
            self.store,
            faults=self.faults,
            serves=self.served.__contains__,
            bookmark_interval=bookmark_interval,
        )
        self.requests: list[Recorded] = []
        self._recorded = asyncio.Event()
        self.tokens: set[str] | None = None
        """Accepted bearer tokens; None accepts everybody."""
        self.auto_gc = auto_gc

    async def handle(self, asked: Asked) -> Answer | Stream:
        """Answer one request. Raises `Broken`."""
        if self.tokens is not None and (asked.authorization or "").removeprefix("Bearer ") not in self.tokens:
            return answer(401, status_object(401, "Unauthorized", "Unauthorized"))
        target = self._target(asked)
        if target is None:
            return unknown_path()
        fault = self.faults.take(target)
        if fault is not None:
            failed = await self._suffer(fault, target, asked)
            if failed is not None:
                return failed
        if target.resource not in self.served:
            self._record(target, 404, asked)
            return unknown_path()
        if target.verb == "watch":
            self._record(target, 200, asked)
            return Stream(self.reader.watch(target, asked))
        try:
            answered = self._answer(target, asked)
        except Refused as error:
            answered = answer(error.code, error.body)
        self._record(target, answered.status, asked)
        return answered

    async def _suffer(self, fault: Fault, target: Target, asked: Asked) -> Answer | None:
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
            return None
        self._record(target, fault.status if fault.kind == "fail" else 0, asked)
        if fault.kind == "hang":
            await asyncio.Event().wait()
        if fault.kind == "break":
            raise Broken
        body = status_object(fault.status, fault.reason, fault.message)
        headers = {} if fault.retry_after is None else {"Retry-After": str(round(fault.retry_after))}
        return Answer(fault.status, json.dumps(body).encode(), headers)

    def _answer(self, target: Target, asked: Asked) -> Answer:
        if target.verb == "list":
            return self.reader.list(target, asked)
        if target.verb == "get":
            found = self.reader.get(target)
            if found is None:
                message = f'{target.resource} "{target.name}" not found'
                raise Refused(404, "NotFound", message, name=target.name, kind=target.resource.plural)
            return answer(200, found)
        body = _json(asked.body)
        manager = asked.query.get("fieldManager") or "unknown"
        match target.verb:
            case "create":
                return answer(201, self.writer.create(target, body, manager))
            case "update":
                return answer(200, self.writer.update(target, body, manager))
            case "delete":
                gone = self.writer.delete(target, body)
                if self.auto_gc:
                    self.collect_garbage()
                return answer(200, gone)
        if asked.content_type in MERGE_PATCHES:
            return answer(200, self.writer.merge_patch(target, body, manager))
        if asked.content_type == "application/apply-patch+yaml":
            force = asked.query.get("force") == "true"
            return answer(200, self.writer.apply(target, body, manager, force=force))
        raise Refused(415, "UnsupportedMediaType", f"{asked.content_type} is not supported here")

    def collect_garbage(self) -> int:
        """Remove what the garbage collector would, until nothing is left to remove; returns how many went."""
        removed = 0
        while True:
            objects = list(self.store.everything())
            uids = {obj["metadata"].get("uid"): obj for _, _, obj in objects if "metadata" in obj}
            doomed = [
                (resource, key)
                for resource, key, obj in objects
                for owner in (obj.get("metadata") or {}).get("ownerReferences") or []
                if owner.get("uid") not in uids or _waits_for_dependents(uids[owner["uid"]])
            ]
            for resource, key in dict.fromkeys(doomed):
                self.store.write(resource, key, None)
                removed += 1
            if not doomed:
                return removed + self._finish_foreground()

    def _finish_foreground(self) -> int:
        finished = 0
        for resource, key, obj in self.store.everything():
            if _waits_for_dependents(obj):
                changed = json.loads(json.dumps(obj))
                changed["metadata"]["finalizers"].remove("foregroundDeletion")
                self.store.write(resource, key, changed if changed["metadata"]["finalizers"] else None)
                finished += 1
        return finished

    async def recorded(self) -> None:
        """Wait for the next request to be recorded."""
        await self._recorded.wait()

    def _record(self, target: Target, status: int, asked: Asked) -> None:
        body: Object = _json(asked.body) if asked.body else {}
        self.requests.append(
            Recorded(
                target.verb,
                target.resource,
                target.namespace,
                target.name,
                target.subresource,
                status,
                body,
            )
        )
        self._recorded.set()
        self._recorded = asyncio.Event()

    def _target(self, asked: Asked) -> Target | None:
        parts = [unquote(part) for part in asked.path.strip("/").split("/")]
        if parts[0] == "api" and len(parts) >= 3:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) >= 4:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        namespace = ""
        if rest[0] == "namespaces" and len(rest) >= 3:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "")[:3]
        # A kind that is not served now is still recognised, so that faults and the record can name it.
        resource = next(
            (
                kind
                for kind in self.served
                if (kind.group, kind.version, kind.plural) == (group, version, plural)
            ),
            Resource(group, version, plural, plural),
        )
        if asked.method == "GET":
            verb = "get" if name else ("watch" if asked.query.get("watch") == "true" else "list")
        else:
            verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[asked.method]
        return Target(verb, resource, namespace, name, subresource)


def _json(body: bytes) -> Object:
    try:
        parsed = json.loads(body or b"{}")
    except ValueError as error:
        raise Refused(400, "BadRequest", f"the body is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise Refused(400, "BadRequest", "the body is not an object")
    return parsed


def _waits_for_dependents(obj: Object) -> bool:
    metadata = obj.get("metadata") or {}
    return "foregroundDeletion" in (metadata.get("finalizers") or [])
