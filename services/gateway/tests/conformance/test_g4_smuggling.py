"""G4/G5: no byte sequence makes gateway and backend disagree about where a request or an answer ends."""

from __future__ import annotations

import pytest

from .harness.backend import Call
from .harness.client import connected
from .harness.rig import Rig
from .harness.wire import WireEndError

INNER = b"POST /smuggled HTTP/1.1\r\nHost: model.test\r\nContent-Length: 0\r\n\r\n"
START = b"POST /v1/x HTTP/1.1\r\nHost: model.test\r\n"

ATTACKS = {
    "length and chunked": START + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunked and length": START
    + b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX"
    + INNER,
    "two lengths": START + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(INNER) + INNER,
    "length list": START + b"Content-Length: 0, %d\r\n\r\n" % len(INNER) + INNER,
    "length plus": START + b"Content-Length: +%d\r\n\r\n" % len(INNER) + INNER,
    "length minus": START + b"Content-Length: -1\r\n\r\n" + INNER,
    "length hex": START + b"Content-Length: 0x10\r\n\r\n" + INNER,
    "length overflow": START + b"Content-Length: 18446744073709551616\r\n\r\n" + INNER,
    "length underscore": START + b"Content-Length: 1_0\r\n\r\n" + INNER,
    "te space before colon": START + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + INNER,
    "te tab": START + b"Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INNER,
    "te twice": START + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + INNER,
    "te identity last": START + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + INNER,
    "te prefixed": START + b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INNER,
    "te vertical tab": START
    + b"Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    + INNER,
    "te folded": START + b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INNER,
    "te gzip": START + b"Transfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INNER,
    "bare lf headers": b"POST /v1/x HTTP/1.1\nHost: model.test\nContent-Length: 0\n\n" + INNER[:0],
    "bare lf in value": START
    + b"X-A: b\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    + INNER,
    "bare cr in value": START
    + b"X-A: b\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    + INNER,
    "nul in value": START + b"X-A: b\x00c\r\nContent-Length: 0\r\n\r\n",
    "space in name": START + b"X A: b\r\nContent-Length: 0\r\n\r\n",
    "no colon": START + b"Content-Length 5\r\n\r\n" + INNER,
    "leading space header": START + b" Content-Length: %d\r\n\r\n" % len(INNER) + INNER,
    "chunk size overflow": START + b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n" + INNER,
    "chunk size sign": START + b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n" + INNER,
    "chunk size space": START + b"Transfer-Encoding: chunked\r\n\r\n0 \r\n\r\n" + INNER,
    "chunk size 0x": START + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "chunk extension lf": START + b"Transfer-Encoding: chunked\r\n\r\n5;x\nhello\r\n0\r\n\r\n" + INNER[:0],
    "chunk without crlf": START + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n" + INNER,
    "chunk bare lf": START + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n" + INNER[:0],
    "http 1.0 chunked": b"POST /v1/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "http 1.0 te and length": (
        b"POST /v1/x HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Length: 5\r\n\r\n0\r\n\r\n" + INNER
    ),
    "trailer fields": START
    + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 50\r\nHost: evil\r\n\r\n",
    "get with body": b"GET /v1/x HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n" % len(INNER) + INNER,
    "two hosts": START + b"Host: other\r\nContent-Length: 0\r\n\r\n",
    "no host": b"POST /v1/x HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "lf in target": b"POST /v1/x\n HTTP/1.1\r\nHost: m\r\nContent-Length: 0\r\n\r\n",
    "version 1.2": b"POST /v1/x HTTP/1.2\r\nHost: m\r\nContent-Length: 0\r\n\r\n",
    "version 2.0": b"POST /v1/x HTTP/2.0\r\nHost: m\r\nContent-Length: 0\r\n\r\n",
    "h2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "connect": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
    "tls hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
}

MAY_PASS_AS_TWO = {"te tab", "length and chunked", "chunked and length", "chunk size space"}
"""Attacks where a second request is what RFC 9112 reads; both sides must then agree."""

REFUSED = {
    "two lengths",
    "length list",
    "length plus",
    "length minus",
    "length hex",
    "length overflow",
    "length underscore",
    "te space before colon",
    "te vertical tab",
    "bare cr in value",
    "nul in value",
    "space in name",
    "no colon",
    "chunk size overflow",
    "chunk size sign",
    "chunk size 0x",
    "chunk without crlf",
    "h2 preface",
    "tls hello",
}
"""Attacks that must not reach the backend as an ordinary answered request."""


@pytest.mark.parametrize("name", ATTACKS)
async def test_g4_ambiguous_requests_never_split_in_two(warm: Rig, name: str) -> None:
    statuses: list[int] = []
    async with connected(warm.gateway.port) as client:
        client.send(ATTACKS[name])
        try:
            while len(statuses) < 3 and not await client.wire.silent(0.25):
                while client.wire.buffer:
                    statuses.append((await client.reply(within=2)).status)
        except WireEndError:
            pass
        except TimeoutError:
            pass
    targets = [call.head.target for call in warm.backend.calls]
    if name not in MAY_PASS_AS_TWO and not name.startswith(("te ", "http 1.0", "chunk size space")):
        assert b"/smuggled" not in targets
    if name in REFUSED:
        assert 200 not in statuses
    for call in warm.backend.calls:
        assert_unambiguous(call)
    warm.backend.reset()
    assert (await warm.gateway.ask()).status == 200


def assert_unambiguous(call: Call) -> None:
    """What the backend received has exactly one meaning."""
    head = call.head
    assert len(head.all("content-length")) + len(head.all("transfer-encoding")) <= 1, head.raw
    if head.all("content-length"):
        assert (head.one("content-length") or b"").isdigit()
    if head.all("transfer-encoding"):
        assert head.one("transfer-encoding") == b"chunked"
    assert b"\n" not in head.raw.replace(b"\r\n", b"")
    assert b"\r" not in head.raw.replace(b"\r\n", b"")
    assert b"\x00" not in head.raw
    assert len(head.all("host")) <= 1
    assert head.start_line.endswith(b" HTTP/1.1")


OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "length and chunked": OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
    "bad length": OK + b"Content-Length: abc\r\n\r\nabcde",
    "bad chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabcde",
    "bare cr": OK + b"X-A: b\rSet-Cookie: evil\r\nContent-Length: 0\r\n\r\n",
    "two answers": OK + b"Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    "answer after no content": b"HTTP/1.1 204 None\r\n\r\n" + OK + b"Content-Length: 4\r\n\r\nevil",
    "unasked switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw",
    "status 0": b"HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n",
    "status 99999": b"HTTP/1.1 99999 No\r\nContent-Length: 0\r\n\r\n",
    "endless head": OK + b"" + b"X-Pad: " + b"y" * (2 << 20) + b"\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_g4_ambiguous_answers_never_reach_the_next_client(warm: Rig, name: str) -> None:
    async def script(call: Call) -> None:
        call.send(ANSWERS[name])
        await call.wire.silent(0.1)
        call.wire.close()

    warm.backend.script = script
    async with connected(warm.gateway.port) as client:
        client.request()
        try:
            first = await client.reply(within=5)
        except WireEndError:
            first = None
        if first is not None:
            assert first.data != b"evil"
            assert b"set-cookie" not in first.head.raw.lower().replace(b"\rset-cookie", b"")
    warm.backend.reset()
    for _ in range(3):
        reply = await warm.gateway.ask()
        assert reply.status == 200
        assert b"evil" not in reply.data
