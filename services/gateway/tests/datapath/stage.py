"""A data path on a stage: real control side, real sockets, a backend that follows a script."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from noctaya_api.demand.signal import DemandSignal
from noctaya_api.process.http_server import HttpServer
from noctaya_api.process.token_file import TokenFile
from noctaya_gateway.activation import Activation
from noctaya_gateway.admission import Admission
from noctaya_gateway.asgi import ModelApp
from noctaya_gateway.auth import Authenticator
from noctaya_gateway.balancer import Address, Balancer
from noctaya_gateway.body import BufferBudget
from noctaya_gateway.cors import Cors
from noctaya_gateway.datapath import DataPath
from noctaya_gateway.demand import DemandMeter
from noctaya_gateway.errors import ActivationTimeout
from noctaya_gateway.gate import Gate
from noctaya_gateway.metrics import GatewayMetrics
from noctaya_gateway.models import Models
from noctaya_gateway.pacing import Pacer
from noctaya_gateway.protocol import model_protocol
from noctaya_gateway.tunnel import tunnel_protocol
from noctaya_gateway.upstream.pool import UpstreamPool
from noctaya_gateway.waiting import WaitingLine

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PATIENCE = 20.0
"""Seconds a test waits for something that happens in milliseconds on a quiet machine."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  the condition has no event
            await asyncio.sleep(0.005)


async def read_head(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """A request's head and its body, by Content-Length or in chunks (returned with their framing)."""
    head = await read_head(reader)
    lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
    fields = {name.strip(): value.strip() for name, _, value in lines}
    if b"content-length" in fields:
        return head, await asyncio.wait_for(reader.readexactly(int(fields[b"content-length"])), PATIENCE)
    if fields.get(b"transfer-encoding") == b"chunked":
        return head, await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), PATIENCE)
    return head, b""


def replying(response: bytes, *, close: bool = False) -> Handler:
    """A backend that answers every request with the same bytes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            writer.write(response)
            if close:
                return

    return handler


class Backend:
    """A raw TCP server; `handler` may be exchanged between connections."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.accepted = 0
        self.open = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.address = Address("127.0.0.1", 0)

    async def start(self, ssl: Any = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=ssl)
        self.address = Address("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        self.open += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self.handler(reader, writer)
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Stage:
    """One gateway data path; `port` is where clients connect."""

    def __init__(
        self,
        *,
        engine: str,
        keys: Path | None = None,
        max_queue: int = 10,
        max_body: int = 256 * 1024 * 1024,
        budget: int = 256 * 1024 * 1024,
        body_timeout: float = 30.0,
        activation_timeout: float = 60.0,
        heartbeat_interval: float = 10.0,
        reject_cold: bool = False,
        cors: tuple[str, ...] = (),
        tls: Any = None,
        server_hostname: str | None = None,
        idle_seconds: float = 4.0,
        header_timeout: float = 10.0,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.balancer = Balancer()
        self.admission = Admission(max_queue)
        self.activation = Activation(
            timers=loop, timeout=activation_timeout, grace=0.0, is_ready=lambda: self.balancer.ready
        )
        meter = DemandMeter(
            admission=self.admission, activation=self.activation, signal=DemandSignal(), timers=loop
        )
        self.line = WaitingLine(
            timers=loop,
            balancer=self.balancer,
            pacer=Pacer(0),
            timeout=activation_timeout,
            heartbeat_interval=heartbeat_interval,
            timeout_error=lambda waited: ActivationTimeout(waited=waited, retry_seconds=1),
        )
        self.metrics = GatewayMetrics()
        self.gate = Gate(
            timers=loop,
            auth=Authenticator(None if keys is None else TokenFile(keys)),
            admission=self.admission,
            activation=self.activation,
            balancer=self.balancer,
            line=self.line,
            demand=meter,
            metrics=self.metrics,
            models=Models(("m",), created=1),
            cors=Cors(cors),
            reject_cold=reject_cold,
            heartbeats=True,
        )
        self.pool = UpstreamPool(tls=tls, server_hostname=server_hostname, idle_seconds=idle_seconds)
        self.budget = BufferBudget(budget)
        self.path = DataPath(
            gate=self.gate,
            pool=self.pool,
            budget=self.budget,
            max_body=max_body,
            body_timeout=body_timeout,
        )
        operations = FastAPI()
        operations.add_api_route("/healthz", lambda: {"ok": True}, methods=["GET"])
        asgi = engine == "asgi"
        self.server = HttpServer(
            ModelApp(self.path, operations=operations) if asgi else operations,
            listen="127.0.0.1:0",
            http="httptools" if asgi else model_protocol(self.path),
            ws=tunnel_protocol(self.path),
            date_header=False,
            header_timeout=header_timeout,
        )
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def port(self) -> int:
        return self.server.port

    def warm(self, *backends: Backend) -> None:
        """Make the backends known and ready."""
        self.balancer.set_addresses([backend.address for backend in backends])
        for backend in backends:
            self.balancer.mark(backend.address, ready=True)

    def cool(self, *backends: Backend) -> None:
        """Make the backends known and not ready."""
        self.balancer.set_addresses([backend.address for backend in backends])
        for backend in backends:
            self.balancer.mark(backend.address, ready=False)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        self._writers.append(writer)
        return reader, writer

    async def ask(self, request: bytes) -> bytes:
        """Send bytes on a new connection and read until it ends."""
        reader, writer = await self.connect()
        writer.write(request)
        return await asyncio.wait_for(reader.read(-1), PATIENCE)

    def at_rest(self) -> bool:
        """Everything was given back."""
        used = sum(self.balancer.in_flight(address) for address in self.balancer.addresses)
        return self.admission.pending == 0 and self.budget.used == 0 and used == 0 and len(self.line) == 0

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        await until(self.at_rest)
        await self.server.drain(5.0)
        await self.pool.close()
        self.gate.close()


def post(
    body: bytes = b"{}", *, path: bytes = b"/v1/chat/completions", headers: bytes = b"", close: bool = True
) -> bytes:
    """A POST with its length; `headers` are complete lines."""
    closing = b"Connection: close\r\n" if close else b""
    head = b"POST %b HTTP/1.1\r\nHost: h\r\n%b%bContent-Length: %d\r\n\r\n" % (
        path,
        headers,
        closing,
        len(body),
    )
    return head + body


def ok(body: bytes = b"ok", *, headers: bytes = b"") -> bytes:
    """A 200 with its length."""
    return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (headers, len(body), body)
