"""G4: every legal form of HTTP/1 that real clients and servers use works through the gateway."""

from __future__ import annotations

import asyncio

import pytest

from .conftest import Lend
from .harness.backend import JSON_REPLY, Call, hold
from .harness.client import PLAIN_BODY, connected, request_bytes
from .harness.message import LAST_CHUNK, chunk
from .harness.rig import Rig
from .test_g2_errors import key_file


async def test_g4_http_1_0_client_gets_a_plain_answer_and_a_close(warm: Rig) -> None:
    async with connected(warm.gateway.port) as client:
        client.request(version=b"HTTP/1.0", host=None)
        reply = await client.reply()
        assert (reply.status, reply.data) == (200, JSON_REPLY)
        await client.wire.ended()


async def test_g4_http_1_0_client_never_sees_chunks(warm: Rig) -> None:
    async def script(call: Call) -> None:
        await call.stream([b"data: 1\n\n", b"data: [DONE]\n\n"])

    warm.backend.script = script
    async with connected(warm.gateway.port) as client:
        client.request(version=b"HTTP/1.0")
        head = await client.head()
        assert not head.chunked
        assert await client.wire.to_end() == b"data: 1\n\ndata: [DONE]\n\n"


async def test_g4_http_1_0_keep_alive_is_either_honoured_or_closed(warm: Rig) -> None:
    async with connected(warm.gateway.port) as client:
        client.request(version=b"HTTP/1.0", headers=[(b"Connection", b"keep-alive")])
        reply = await client.reply()
        assert reply.data == JSON_REPLY
        if (reply.head.one("connection") or b"").lower() == b"keep-alive":
            assert (await client.exchange(version=b"HTTP/1.0")).status == 200
        else:
            await client.wire.ended()


async def test_g4_connection_is_kept_for_many_requests(warm: Rig) -> None:
    async with connected(warm.gateway.port) as client:
        for _ in range(20):
            assert (await client.exchange()).status == 200
    assert len({id(call.wire) for call in warm.backend.calls}) == 1


async def test_g4_connection_close_is_honoured(warm: Rig) -> None:
    async with connected(warm.gateway.port) as client:
        client.request(headers=[(b"Connection", b"close")])
        reply = await client.reply()
        assert reply.status == 200
        assert (reply.head.one("connection") or b"").lower() == b"close"
        await client.wire.ended()


async def test_g4_pipelined_requests_are_answered_in_order(warm: Rig) -> None:
    async def slower_first(call: Call) -> None:
        await asyncio.sleep(0.3 if call.data == b"0" else 0)
        call.reply(call.data)

    warm.backend.script = slower_first
    async with connected(warm.gateway.port) as client:
        client.send(b"".join(request_bytes(body=b"%d" % number) for number in range(5)))
        assert [(await client.reply()).data for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


async def test_g4_a_request_may_come_byte_by_byte(warm: Rig) -> None:
    async with connected(warm.gateway.port) as client:
        for byte in request_bytes(body=b"tiny"):
            client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.reply()).status == 200
    assert (await warm.backend.call()).data == b"tiny"


async def test_g4_an_answer_may_come_byte_by_byte(warm: Rig) -> None:
    async def script(call: Call) -> None:
        for byte in (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n" + chunk(b"hello") + LAST_CHUNK
        ):
            call.send(bytes([byte]))
            await asyncio.sleep(0.001)

    warm.backend.script = script
    reply = await warm.gateway.ask()
    assert (reply.data, reply.body.complete, reply.head.one("x-a")) == (b"hello", True, b"b")


@pytest.mark.parametrize("state", ["warm", "cold"])
async def test_g4_expect_100_continue_is_answered_before_the_body(lend: Lend, state: str) -> None:
    rig = await lend(healthy=state == "warm", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    head = request_bytes(headers=[(b"Expect", b"100-continue")], body=PLAIN_BODY)[: -len(PLAIN_BODY)]
    async with connected(rig.gateway.port) as client:
        client.send(head)
        interim = await client.head()
        assert interim.status == 100
        client.send(PLAIN_BODY)
        if state == "cold":
            await asyncio.sleep(0.1)
            rig.backend.set_healthy(True)
        assert (await client.reply()).status == 200
    assert (await rig.backend.call()).data == PLAIN_BODY


async def test_g4_expect_100_continue_is_not_invited_when_the_answer_is_no(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory), NOCTAYA_MAX_BODY_BYTES="100")
    for headers, status in (([], 401), ([(b"x-api-key", b"sk-right-key")], 413)):
        async with connected(rig.gateway.port) as client:
            client.request(
                headers=[*headers, (b"Expect", b"100-continue"), (b"Content-Length", b"5000")], body=None
            )
            assert (await client.head()).status == status


async def test_g4_small_chunked_upload_may_be_slow(warm: Rig) -> None:
    async with connected(warm.gateway.port) as client:
        client.request(headers=[(b"Transfer-Encoding", b"chunked")], body=None)
        for piece in (b"a", b"bc", b"d" * 5000):
            client.send(chunk(piece))
            await asyncio.sleep(0.05)
        client.send(b"0\r\nX-Trailer: dropped\r\n\r\n")
        assert (await client.reply()).status == 200
    assert (await warm.backend.call()).data == b"abc" + b"d" * 5000


async def test_g4_early_answer_reaches_the_client_before_its_body_is_sent(warm: Rig) -> None:
    async def refuse_early(call: Call) -> None:
        call.reply(b'{"early":1}', status=b"413 Too Big", headers=[(b"Connection", b"close")])
        await call.wire.silent(0.2)
        call.wire.close()

    warm.backend.read_bodies = False
    warm.backend.script = refuse_early
    async with connected(warm.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"50000000")], body=None)
        client.send(b"x" * (3 << 20))
        reply = await client.reply()
        assert (reply.status, reply.data) == (413, b'{"early":1}')


@pytest.mark.parametrize("method", [b"HEAD", b"GET"])
@pytest.mark.parametrize("status", [b"200 OK", b"204 No Content", b"304 Not Modified"])
async def test_g4_bodiless_answers_leave_the_connection_in_step(
    warm: Rig, method: bytes, status: bytes
) -> None:
    async def script(call: Call) -> None:
        if call.head.method == b"HEAD":
            call.send_head(status, [(b"Content-Length", b"12345"), (b"ETag", b'"e"')])
        elif status.startswith(b"200"):
            call.reply(b"body")
        else:
            call.send_head(status, [(b"ETag", b'"e"')])

    warm.backend.script = script
    async with connected(warm.gateway.port) as client:
        for _ in range(3):
            client.request(method, b"/v1/x", body=None)
            head = await client.head()
            assert head.status == int(status[:3])
            if method == b"GET" and head.status == 200:
                assert await client.wire.exactly(4) == b"body"
            elif method == b"HEAD" and head.status == 200:
                assert head.length == 12345
            assert await client.wire.silent(0.05)


@pytest.mark.parametrize("framing", ["length", "chunked", "close", "zero", "trailers", "http 1.0"])
async def test_g4_every_response_framing_arrives_whole(warm: Rig, framing: str) -> None:
    async def script(call: Call) -> None:
        if framing == "length":
            call.reply(b"hello")
        elif framing == "zero":
            call.reply(b"")
        elif framing in {"chunked", "trailers"}:
            call.send_head(headers=[(b"Transfer-Encoding", b"chunked"), (b"Trailer", b"X-Sum")])
            call.send_chunk(b"hel")
            call.send_chunk(b"lo")
            call.send(LAST_CHUNK if framing == "chunked" else b"0\r\nX-Sum: 1\r\n\r\n")
        else:
            call.send(b"HTTP/1.0 200 OK\r\n\r\n" if framing == "http 1.0" else b"HTTP/1.1 200 OK\r\n\r\n")
            call.send(b"hello")
            call.wire.close()

    warm.backend.script = script
    async with connected(warm.gateway.port) as client:
        for _ in range(2):
            reply = await client.exchange()
            assert reply.status == 200
            assert reply.body.complete
            assert reply.data == (b"" if framing == "zero" else b"hello")


async def test_g4_interim_answers_do_not_become_the_answer(warm: Rig) -> None:
    async def script(call: Call) -> None:
        call.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        call.reply(b"final")

    warm.backend.script = script
    async with connected(warm.gateway.port) as client:
        client.request()
        head = await client.head()
        while head.status < 200:
            head = await client.head()
        assert head.status == 200
        assert await client.wire.exactly(head.length or 0) == b"final"


async def test_g4_compressed_answers_are_not_touched(warm: Rig) -> None:
    async def script(call: Call) -> None:
        call.reply(
            b"\x1f\x8bnot really", headers=[(b"Content-Encoding", b"gzip"), (b"Vary", b"Accept-Encoding")]
        )

    warm.backend.script = script
    reply = await warm.gateway.ask(headers=[(b"Accept-Encoding", b"gzip, br")])
    assert reply.data == b"\x1f\x8bnot really"
    assert reply.head.one("content-encoding") == b"gzip"
    assert (await warm.backend.call()).head.one("accept-encoding") == b"gzip, br"


async def test_g4_absolute_form_target_reaches_the_backend_only(warm: Rig) -> None:
    """Some clients behind proxies send the whole URL; it must never make the gateway an open proxy."""
    async with connected(warm.gateway.port) as client:
        reply = await client.exchange(target=b"http://other.example:1/v1/x")
    assert reply.status in {200, 400}
    if reply.status == 200:
        assert (await warm.backend.call()).head.target in {b"/v1/x", b"http://other.example:1/v1/x"}


async def test_g4_half_closed_client_is_gone(warm: Rig) -> None:
    """A FIN is all that a client behind a proxy sends when it leaves."""
    warm.backend.script = hold
    async with connected(warm.gateway.port) as client:
        client.request()
        call = await warm.backend.call()
        client.wire.shut_writing()
        await call.wire.ended(within=5)


async def test_g4_date_and_server_of_the_backend_are_kept_and_not_doubled(warm: Rig) -> None:
    async def script(call: Call) -> None:
        call.reply(headers=[(b"Date", b"Tue, 15 Nov 1994 08:12:31 GMT"), (b"Server", b"model/1")])

    warm.backend.script = script
    head = (await warm.gateway.ask()).head
    assert head.one("date") == b"Tue, 15 Nov 1994 08:12:31 GMT"
    assert head.one("server") == b"model/1"


async def test_g4_cookies_and_other_lists_are_not_joined(warm: Rig) -> None:
    async def script(call: Call) -> None:
        call.reply(
            headers=[
                (b"Set-Cookie", b"a=1; Path=/"),
                (b"Vary", b"A"),
                (b"Set-Cookie", b"b=2"),
                (b"Vary", b"B"),
            ]
        )

    warm.backend.script = script
    head = (await warm.gateway.ask(headers=[(b"Cookie", b"x=1"), (b"Cookie", b"y=2")])).head
    assert head.all("set-cookie") == [b"a=1; Path=/", b"b=2"]
    assert head.all("vary") == [b"A", b"B"]
    assert (await warm.backend.call()).head.all("cookie") == [b"x=1", b"y=2"]
