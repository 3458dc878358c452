"""However a network splits bytes, the same requests and responses come out of them."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_gateway.balancer import Address
from noctaya_gateway.upstream.connection import UpstreamConnection
from uvicorn.server import ServerState

from .stage import Stage, ok, post

REQUESTS = (
    post(b'{"a":1}', close=False)
    + b"POST /two HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n"
    + b"GET /three?q HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n"
    + post(b"z" * 300, path=b"/four")
)
STARTS = [b"POST /v1/chat/completions ", b"POST /two ", b"GET /three?q ", b"POST /four "]
ENDS = [b'\r\n\r\n{"a":1}', b"\r\n\r\nabcde", b"\r\n\r\n", b"z" * 300]

RESPONSES = (
    (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok(b"hello", headers=b"A: 1\r\n"), b"hello"),
    (
        b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nT: 1\r\n\r\n",
        b"hello",
    ),
)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({cut % len(data) for cut in cuts} | {0, len(data)})
    return [data[begin:end] for begin, end in pairwise(at)]


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, parts: list[bytes]) -> None:
        self.written.append(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default


class Taker:
    """A receiver that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.data = b""

    def upstream_interim(self, status: int, reason: bytes, headers: list[Any]) -> None:
        self.told.append((status, reason, headers))

    def upstream_head(self, status: int, reason: bytes, headers: list[Any]) -> None:
        self.told.append((status, reason, headers))

    def upstream_data(self, data: bytes) -> None:
        self.data += data

    def upstream_flush(self) -> None:
        """Nothing to note."""

    def upstream_end(self, trailers: list[Any], *, by_closing: bool = False) -> None:
        self.told.append(trailers)


@settings(deadline=None, max_examples=60)
@given(cuts=st.lists(st.integers(0, 10_000), max_size=40))
def test_pipelined_requests_are_the_same_however_they_arrive(cuts: list[int]) -> None:
    async def run() -> None:
        stage = Stage(engine="protocol")
        await stage.server.start()
        address = Address("127.0.0.1", 9)
        stage.balancer.set_addresses([address])
        stage.balancer.mark(address, ready=True)
        backend_wire, client_wire = Wire(), Wire()
        connection = UpstreamConnection(address, on_idle=stage.pool._on_idle, on_gone=stage.pool._on_gone)
        connection.connection_made(backend_wire)  # type: ignore[arg-type]
        stage.pool._on_idle(connection)
        config = stage.server._config
        client: Any = config.http_protocol_class(config=config, server_state=ServerState(), app_state={})  # type: ignore[call-arg]
        client.connection_made(client_wire)
        answered = 0
        for piece in split(REQUESTS, cuts):
            client.data_received(piece)
            while answered < len(backend_wire.written):
                answered += 1
                connection.data_received(ok(b"%d" % answered))
        seen = backend_wire.written
        assert [s for s in STARTS if any(w.startswith(s) for w in seen)] == STARTS
        assert all(w.startswith(s) and w.endswith(e) for w, s, e in zip(seen, STARTS, ENDS, strict=True))
        reply = b"".join(client_wire.written)
        assert [part[-1:] for part in reply.split(b"HTTP/1.1 200 OK")[1:]] == [b"1", b"2", b"3", b"4"]
        assert client_wire.closed
        client.connection_lost(None)
        await stage.close()

    asyncio.run(run())


@settings(deadline=None)
@given(which=st.sampled_from(RESPONSES), cuts=st.lists(st.integers(0, 10_000), max_size=40))
def test_response_is_the_same_however_it_arrives(which: tuple[bytes, bytes], cuts: list[int]) -> None:
    raw, body = which
    idle: list[UpstreamConnection] = []
    takers = []
    for pieces in ([raw], split(raw, cuts)):
        wire, taker = Wire(), Taker()
        connection = UpstreamConnection(Address("h", 1), on_idle=idle.append, on_gone=idle.append)
        connection.connection_made(wire)  # type: ignore[arg-type]
        connection.attach(taker, head_only=False)  # type: ignore[arg-type]
        connection.send(b"request", last=True)
        for piece in pieces:
            connection.data_received(piece)
        takers.append(taker)
        assert not wire.closed
    assert takers[0].told == takers[1].told
    assert takers[0].data == takers[1].data == body
    assert len(idle) == 2


@settings(deadline=None, max_examples=200)
@given(garbage=st.binary(min_size=1, max_size=120))
def test_no_bytes_of_a_backend_do_harm(garbage: bytes) -> None:
    class Survivor(Taker):
        def upstream_lost(self, reason: str, *, stale: bool) -> None:
            self.told.append(reason)

        def upstream_switched(self, reason: bytes, headers: list[Any]) -> None:
            self.told.append(reason)

    wire, taker = Wire(), Survivor()
    connection = UpstreamConnection(Address("h", 1), on_idle=lambda _: None, on_gone=lambda _: None)
    connection.connection_made(wire)  # type: ignore[arg-type]
    connection.attach(taker, head_only=False)  # type: ignore[arg-type]
    connection.data_received(b"HTTP/1.1 " + garbage)
    connection.data_received(garbage)
    connection.connection_lost(None)
