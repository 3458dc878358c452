"""The fake API server over HTTP, and the handles tests hold."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from noctaya_operator.kube.access import StaticAccess
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.objects import Key, key_of
from noctaya_operator.kube.resources import BUILT_IN, Resource, resource_of

from fake_apiserver.api import Api, Broken
from fake_apiserver.direct import DirectTransport
from fake_apiserver.faults import Faults
from fake_apiserver.protocol import WRITES, Asked, Object, Recorded, Stream
from fake_apiserver.writes import Admission


class FakeApiServer:
    """See the package's docstring for what it does and how to use it.

    Args:
        resources: kinds served from the start, and kinds its clients know.
        history: writes remembered for watches; older resourceVersions are answered with 410.
        bookmark_interval: seconds between bookmarks on a watch.
        auto_gc: collect garbage after every delete request.
    """

    def __init__(
        self,
        resources: Iterable[Resource] = BUILT_IN,
        *,
        history: int = 10_000,
        bookmark_interval: float = 60.0,
        auto_gc: bool = False,
    ) -> None:
        self.resources = tuple(resources)
        self.api = Api(self.resources, history=history, bookmark_interval=bookmark_interval, auto_gc=auto_gc)
        self._runner: web.AppRunner | None = None
        self._down = False
        self._transports: set[asyncio.Transport] = set()
        self._clients: list[KubeClient] = []
        self.direct_streams: set[asyncio.Future[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        """Close the clients it made, break all connections, stop listening."""
        for client in self._clients:
            await client.close()
        self.drop_connections()
        if self._runner is not None:
            await self._runner.cleanup()

    def client(self, *, token: str | None = None, **options: Any) -> KubeClient:
        """A client over HTTP; options as for `KubeClient.over`."""
        options.setdefault("resources", self.resources)
        client = KubeClient.over(StaticAccess(self.url, token=token), **options)
        self._clients.append(client)
        return client

    def direct_client(self) -> KubeClient:
        """A client that calls the server in this loop without sockets; works under looptime."""
        return KubeClient(DirectTransport(self), resources=self.resources)

    # What happens to the server

    @property
    def faults(self) -> Faults:
        """Plan what goes wrong."""
        return self.api.faults

    @property
    def is_down(self) -> bool:
        """Whether every request is broken off."""
        return self._down

    def down(self) -> None:
        """Break all connections, and every new one, until `up`."""
        self._down = True
        self.drop_connections()

    def up(self) -> None:
        """Serve again."""
        self._down = False

    def restart(self, *, lose_history: bool = False) -> None:
        """Break all connections; with `lose_history` older resourceVersions are answered with 410."""
        self.drop_connections()
        if lose_history:
            self.expire_history()

    def restore_backup(self, versions: int = 100) -> None:
        """As after an etcd restore: resourceVersions go back, all connections break."""
        self.api.store.rewind(versions)
        self.api.reader.forget_pages()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Reset every open connection."""
        for transport in self._transports:
            transport.abort()
        self._transports.clear()
        for direct in list(self.direct_streams):
            direct.cancel()

    def expire_history(self) -> None:
        """Compact: watches and continue tokens from before now are answered with 410."""
        self.api.store.forget_history()
        self.api.reader.forget_pages()

    def serve(self, resource: Resource) -> None:
        """The kind's CRD is installed."""
        self.api.served.add(resource)

    def withdraw(self, resource: Resource) -> None:
        """The kind's CRD is removed with all its objects; its watches end."""
        for obj in self.all(resource):
            self.api.store.write(resource, key_of(obj), None)
        self.api.served.discard(resource)
        self.api.store.wake()

    # Objects

    @property
    def admission(self) -> list[Admission]:
        """Hooks `(verb, resource, object) -> message or None`; a message refuses with 403."""
        return self.api.writer.admission

    @property
    def terminating_namespaces(self) -> set[str]:
        """Namespaces in which nothing can be created."""
        return self.api.writer.terminating_namespaces

    def resource_of(self, obj: Object) -> Resource:
        """The served kind of an object."""
        return resource_of(obj, self.resources)

    def put(self, obj: Object) -> Object:
        """Write an object as it is, status included; uid, generation and creation time are filled in."""
        obj = copy.deepcopy(obj)
        metadata = obj.setdefault("metadata", {})
        resource, key = self.resource_of(obj), key_of(obj)
        live = self.api.store.get(resource, key)
        defaults: Object = (
            live["metadata"]
            if live is not None
            else {
                "uid": f"uid-{self.api.store.version + 1}",
                "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }
        )
        for name in ("uid", "generation", "creationTimestamp"):
            if name in defaults:
                metadata.setdefault(name, defaults[name])
        return self.api.store.write(resource, key, obj) or {}

    def set_status(self, resource: Resource, namespace: str, name: str, status: Object) -> Object:
        """Replace the status, as a controller or kubelet would."""
        key = Key(namespace, name)
        obj = self.api.store.get(resource, key)
        if obj is None:
            raise LookupError(f"{resource} {key}")
        obj["status"] = copy.deepcopy(status)
        return self.api.store.write(resource, key, obj) or {}

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """A copy of the object, None when there is none."""
        return self.api.store.get(resource, Key(namespace, name))

    def all(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        """Copies of all objects of a kind."""
        return self.api.store.all(resource, namespace)

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        """Remove at once, finalizers or not."""
        self.api.store.write(resource, Key(namespace, name), None)

    def collect_garbage(self) -> int:
        """Remove objects whose owner is gone; returns how many went."""
        return self.api.collect_garbage()

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far; clear it freely."""
        return self.api.requests

    async def asked(self, *, times: int = 1, **wanted: Any) -> list[Recorded]:
        """Wait until so many requests with these attributes (`verb`, `name`, ...) were recorded."""
        while True:
            found = [
                request
                for request in self.api.requests
                if all(getattr(request, name) == value for name, value in wanted.items())
            ]
            if len(found) >= times:
                return found
            await self.api.recorded()

    def writes(self) -> list[Recorded]:
        """The requests that were no reads."""
        return [request for request in self.api.requests if request.verb in WRITES]

    # HTTP

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if not isinstance(transport, asyncio.Transport):
            raise ConnectionResetError("the client left")
        if self._down:
            transport.abort()
            return web.Response()
        self._transports = {known for known in self._transports if not known.is_closing()} | {transport}
        asked = Asked(
            request.method,
            request.rel_url.raw_path,
            dict(request.query),
            request.content_type,
            await request.read(),
            request.headers.get("Authorization"),
        )
        try:
            answered = await self.api.handle(asked)
            if isinstance(answered, Stream):
                return await _send(request, transport, answered)
        except Broken:
            transport.abort()
            return web.Response()
        return web.Response(
            status=answered.status,
            body=answered.body,
            headers=dict(answered.headers),
            content_type=answered.content_type,
        )


async def _send(request: web.Request, transport: asyncio.Transport, stream: Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    async for piece in stream.pieces:
        if piece is None:
            transport.close()
            return response
        await response.write(piece)
    await response.write_eof()
    return response
