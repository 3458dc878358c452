"""The Kubernetes API in plain dictionaries: read, write, apply, watch.

Objects go in and come out as the server knows them, with `apiVersion` and `kind` always filled in (the server
leaves them out of list items). Nothing is retried here: whoever asks knows whether asking again makes sense,
and errors say how long to wait.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from noctaya_operator.kube.access import Access, find_access
from noctaya_operator.kube.errors import Gone, ServerUnavailable, error_from_status
from noctaya_operator.kube.lines import CutLine, whole_lines
from noctaya_operator.kube.objects import Object, key_of
from noctaya_operator.kube.resources import BUILT_IN, Resource, resource_of
from noctaya_operator.kube.transport import REQUEST_TIMEOUT, Call, HttpTransport, RequestDone, Transport

PAGE_SIZE = 500
"""Objects a list request; what kubectl and client-go use."""
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a list request."""

    items: list[Object]
    resource_version: str
    continue_: str
    """Token for the next page, empty on the last one."""


class KubeClient:
    """Client of one API server; use inside one event loop and close it.

    Args:
        transport: carries the requests, see `connect` and `over`.
        resources: kinds that objects given to `create`, `apply`, `replace` and `update_status` may be of.
    """

    def __init__(self, transport: Transport, *, resources: Iterable[Resource] = BUILT_IN) -> None:
        self._resources = tuple(resources)
        self._transport = transport

    @classmethod
    def over(
        cls,
        access: Access,
        *,
        resources: Iterable[Resource] = BUILT_IN,
        user_agent: str = "kube-client",
        observe: Callable[[RequestDone], None] | None = None,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> KubeClient:
        """A client over HTTP.

        Args:
            access: address and credential, see `access`.
            resources: as for the class.
            user_agent: what the server's audit log shows.
            observe: called once a request, for metrics.
            request_timeout: seconds for a request that is not a watch.
        """
        transport = HttpTransport(
            access, user_agent=user_agent, observe=observe, request_timeout=request_timeout
        )
        return cls(transport, resources=resources)

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | os.PathLike[str] | None = None,
        *,
        context: str | None = None,
        resources: Iterable[Resource] = BUILT_IN,
        user_agent: str = "kube-client",
        observe: Callable[[RequestDone], None] | None = None,
    ) -> KubeClient:
        """A client for the API server that `find_access` finds.

        No request is made yet.

        Raises:
            AccessError: no usable configuration.
        """
        access = await find_access(kubeconfig, context=context)
        return cls.over(access, resources=resources, user_agent=user_agent, observe=observe)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._transport.server

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    def resource_of(self, obj: Mapping[str, Any]) -> Resource:
        """The resource of an object among those this client knows; `UnknownKind` otherwise."""
        return resource_of(obj, self._resources)

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """One object; `namespace` is empty for cluster-scoped kinds. `NotFound`, `KindAbsent`."""
        call = Call("get", "GET", resource, resource.path(namespace, name))
        return await self._object(resource, call)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
    ) -> Page:
        """One page of objects, as of the moment of the first page; `Gone` when `continue_` expired."""
        query = _selection(label_selector, field_selector)
        if limit:
            query["limit"] = str(limit)
        if continue_:
            query["continue"] = continue_
        call = Call("list", "GET", resource, resource.path(namespace), query)
        answer = await self._transport.request(call)
        if not isinstance(answer, dict) or not isinstance(answer.get("items") or [], list):
            raise ServerUnavailable(0, "MalformedAnswer", f"{call.path}: not a list of objects")
        metadata = answer.get("metadata") or {}
        items = [_complete(resource, item) for item in answer.get("items") or [] if isinstance(item, dict)]
        return Page(items, str(metadata.get("resourceVersion") or ""), str(metadata.get("continue") or ""))

    async def list_all(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page_size: int = PAGE_SIZE,
        keep: Callable[[Object], Object | None] | None = None,
    ) -> Page:
        """All objects, page by page; in one piece when the server forgot the list before its last page.

        With `keep`, what it returns stays of each object, nothing for None. The rest is given up before the
        next page comes: a large cluster in full takes a multiple of the memory of what is kept of it.
        """
        items: list[Object] = []
        next_page = ""
        try:
            while True:
                page = await self.list(
                    resource,
                    namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    limit=page_size,
                    continue_=next_page,
                )
                items += _kept(page.items, keep)
                version, next_page = page.resource_version, page.continue_
                del page
                if not next_page:
                    return Page(items, version, "")
        except Gone:
            if not next_page:
                raise
        items.clear()
        page = await self.list(
            resource, namespace, label_selector=label_selector, field_selector=field_selector
        )
        return Page(_kept(page.items, keep), page.resource_version, "")

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str | None = None,
        field_selector: str | None = None,
        seconds: float = 300.0,
        idle_timeout: float = 90.0,
    ) -> AsyncGenerator[Object, None]:
        """Raw events `{"type": ADDED|MODIFIED|DELETED|BOOKMARK, "object": ...}` after `resource_version`.

        Ends when the server ends it, after about `seconds`. Close the iterator (`contextlib.aclosing`)
        when leaving it early.

        Args:
            resource: the kind.
            namespace: None for all.
            resource_version: where a list or an earlier watch left off.
            label_selector: as in `kubectl -l`.
            field_selector: as in `kubectl --field-selector`.
            seconds: after which the server is asked to end the watch.
            idle_timeout: seconds without a byte that mean the connection is dead.

        Raises:
            Gone: `resource_version` is too old; list again.
            ApiError: refused, failed, cut (also inside a line), silent, or not a watch stream.
        """
        query = _selection(label_selector, field_selector)
        query |= {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        call = Call("watch", "GET", resource, resource.path(namespace), query)
        async with self._transport.stream(call, idle_timeout=idle_timeout) as body:
            try:
                async with aclosing(whole_lines(body)) as lines:
                    async for line in lines:
                        yield _event(line)
            except CutLine as error:
                raise ServerUnavailable(0, "WatchCut", f"watch of {resource}: {error}") from error

    async def create(self, obj: Object, *, field_manager: str) -> Object:
        """POST; the namespace comes from the object. `AlreadyExists`, `Invalid`, `Forbidden`."""
        resource = self.resource_of(obj)
        namespace = (obj.get("metadata") or {}).get("namespace")
        path = resource.path(namespace)
        call = Call("create", "POST", resource, path, {"fieldManager": field_manager}, obj)
        return await self._object(resource, call)

    async def apply(
        self, obj: Object, *, field_manager: str, force: bool = True, subresource: str | None = None
    ) -> Object:
        """Server-side apply: the fields given become ours, those given before and not now are removed.

        A `resourceVersion` in the object makes it conditional; `managedFields` must not be in it.
        """
        resource, key = self.resource_of(obj), key_of(obj)
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        path = resource.path(key.namespace, key.name, subresource)
        return await self._object(resource, Call("patch", "PATCH", resource, path, query, obj, APPLY))

    async def patch_merge(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Object:
        """JSON merge patch (RFC 7386): null removes a field, lists are replaced whole."""
        query = {"fieldManager": field_manager} if field_manager else {}
        path = resource.path(namespace, name, subresource)
        return await self._object(resource, Call("patch", "PATCH", resource, path, query, body, MERGE))

    async def replace(self, obj: Object, *, field_manager: str | None = None) -> Object:
        """PUT of the whole object; `Conflict` when its resourceVersion is not the newest."""
        return await self._put(obj, None, field_manager)

    async def update_status(self, obj: Object, *, field_manager: str | None = None) -> Object:
        """PUT of the status alone; the rest of the object only says which. `Conflict` as for `replace`."""
        return await self._put(obj, "status", field_manager)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Ask for deletion; `uid` and `resource_version` make it conditional (`Conflict`). `NotFound`."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if any(preconditions.values()):
            body["preconditions"] = {field: value for field, value in preconditions.items() if value}
        await self._transport.request(
            Call("delete", "DELETE", resource, resource.path(namespace, name), {}, body)
        )

    async def _put(self, obj: Object, subresource: str | None, field_manager: str | None) -> Object:
        resource, key = self.resource_of(obj), key_of(obj)
        query = {"fieldManager": field_manager} if field_manager else {}
        path = resource.path(key.namespace, key.name, subresource)
        return await self._object(resource, Call("update", "PUT", resource, path, query, obj))

    async def _object(self, resource: Resource, call: Call) -> Object:
        answer = await self._transport.request(call)
        if not isinstance(answer, dict):
            raise ServerUnavailable(0, "MalformedAnswer", f"{call.path}: not an object")
        return _complete(resource, answer)


def _complete(resource: Resource, obj: Object) -> Object:
    obj.setdefault("apiVersion", resource.api_version)
    obj.setdefault("kind", resource.kind)
    return obj


def _kept(items: list[Object], keep: Callable[[Object], Object | None] | None) -> list[Object]:
    if keep is None:
        return items
    return [kept for item in items if (kept := keep(item)) is not None]


def _selection(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in given.items() if value}


def _event(line: bytes) -> Object:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise ServerUnavailable(0, "MalformedAnswer", f"not a watch event: {line[:200]!r}") from error
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        raise ServerUnavailable(0, "MalformedAnswer", f"not a watch event: {line[:200]!r}")
    if event.get("type") == "ERROR":
        raise error_from_status(event["object"])
    return event
