"""G3: WebSocket upgrades pass through when warm and are refused, without waking, when cold."""

from __future__ import annotations

import asyncio

import pytest

from .conftest import Lend
from .harness.backend import Call, hold
from .harness.client import Client, connected, open_client
from .harness.message import Header
from .harness.process import eventually
from .harness.rig import Rig
from .test_g2_errors import KEY, assert_retry_after, key_file

UPGRADE: list[Header] = [
    (b"Connection", b"Upgrade"),
    (b"Upgrade", b"websocket"),
    (b"Sec-WebSocket-Version", b"13"),
    (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ=="),
    (b"Sec-WebSocket-Protocol", b"realtime, openai-beta"),
]
ACCEPTED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nX-Own: 1\r\n\r\n"
)
REALTIME = b"/v1/realtime?model=a%2Fb"


async def accept(call: Call) -> None:
    call.send(ACCEPTED)
    await hold(call)


async def opened(rig: Rig, headers: list[Header] | None = None) -> tuple[Client, Call]:
    client = await open_client(rig.gateway.port)
    client.request(b"GET", REALTIME, body=None, headers=UPGRADE if headers is None else headers)
    return client, await rig.backend.call()


async def test_g3_websocket_passes_through_byte_for_byte_when_warm(warm: Rig) -> None:
    warm.backend.script = accept
    client, call = await opened(warm)
    assert call.head.start_line == b"GET " + REALTIME + b" HTTP/1.1"
    assert call.head.one("sec-websocket-key") == b"dGhlIHNhbXBsZSBub25jZQ=="
    assert call.head.one("sec-websocket-protocol") == b"realtime, openai-beta"
    assert (call.head.one("upgrade") or b"").lower() == b"websocket"
    assert (call.head.one("connection") or b"").lower() == b"upgrade"
    head = await client.head()
    assert head.status == 101
    assert head.one("sec-websocket-accept") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert head.one("x-own") == b"1"
    up, down = bytes(range(256)) * 300, bytes(reversed(range(256))) * 300
    client.send(up)
    call.send(down)
    assert await call.wire.exactly(len(up)) == up
    assert await client.wire.exactly(len(down)) == down
    client.leave()
    await call.wire.ended(within=5)


async def test_g3_websocket_close_by_the_backend_reaches_the_client(warm: Rig) -> None:
    warm.backend.script = accept
    client, call = await opened(warm)
    await client.head()
    call.send(b"\x88\x02\x03\xe8")
    call.wire.close()
    assert await client.wire.to_end() == b"\x88\x02\x03\xe8"
    client.leave()


async def test_g3_frames_sent_with_the_handshake_are_not_lost(warm: Rig) -> None:
    async def eager(call: Call) -> None:
        call.send(ACCEPTED + b"\x81\x02hi")
        await hold(call)

    warm.backend.script = eager
    client, _ = await opened(warm)
    assert (await client.head()).status == 101
    assert await client.wire.exactly(4) == b"\x81\x02hi"
    client.leave()


async def test_g3_websocket_refused_by_the_backend_shows_its_answer(warm: Rig) -> None:
    async def refuse(call: Call) -> None:
        call.reply(b'{"no":1}', status=b"403 Forbidden")

    warm.backend.script = refuse
    client, _ = await opened(warm)
    reply = await client.reply()
    assert (reply.status, reply.data) == (403, b'{"no":1}')
    client.leave()


async def test_g3_websocket_on_a_cold_service_is_refused_and_wakes_nothing(cold: Rig) -> None:
    async with connected(cold.gateway.port) as client:
        reply = await client.exchange(b"GET", REALTIME, body=None, headers=UPGRADE)
        assert reply.status == 503
        assert_retry_after(reply)
        assert reply.error["code"] == "cold_start"
    assert await cold.gateway.demand() == 0
    assert cold.backend.calls == []


async def test_g3_websocket_needs_the_key_and_keeps_it_from_the_backend(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    async with connected(rig.gateway.port) as client:
        assert (await client.exchange(b"GET", REALTIME, body=None, headers=UPGRADE)).status == 401
    rig.backend.script = accept
    client, call = await opened(rig, [*UPGRADE, (b"Authorization", b"Bearer " + KEY)])
    assert (await client.head()).status == 101
    assert call.head.one("authorization") is None
    client.leave()
    await call.wire.ended(within=5)


async def test_g3_an_open_websocket_keeps_its_model_awake(warm: Rig) -> None:
    """Nothing but this connection says that the model is in use."""
    warm.backend.script = accept
    client, call = await opened(warm)
    await client.head()
    assert await warm.gateway.demand() == 1
    client.leave()
    await call.wire.ended(within=5)

    async def asleep() -> bool:
        return await warm.gateway.demand() == 0

    await eventually(asleep)


async def test_g3_a_websocket_reader_that_stalls_does_not_fill_the_gateway(warm: Rig) -> None:
    warm.backend.script = accept
    before = warm.gateway.rss()
    client = await open_client(warm.gateway.port, receive_buffer=65536)
    client.request(b"GET", REALTIME, body=None, headers=UPGRADE)
    call = await warm.backend.call()
    await client.head()
    client.wire.pause()
    call.send(b"x" * (40 << 20))
    await asyncio.sleep(0.5)
    assert warm.gateway.rss() - before < (16 << 20)
    client.wire.resume()
    client.leave(reset=True)
    await call.wire.ended(within=5)


async def test_g3_upgrade_to_something_else_is_an_ordinary_request(warm: Rig, engine: str) -> None:
    """`Upgrade` is hop-by-hop: an offer of h2c is not passed on, the request is.

    The server under the ASGI engine drops the body of such a request, which then is refused, not hung.
    """
    reply = await warm.gateway.ask(headers=[(b"Connection", b"Upgrade"), (b"Upgrade", b"h2c")])
    if engine == "asgi":
        assert reply.status == 400
        return
    assert reply.status == 200
    call = await warm.backend.call()
    assert call.head.one("upgrade") is None
    assert call.data
