"""G4: what goes in comes out: bodies, header order, duplicates and raw paths, both ways."""

from __future__ import annotations

import hashlib
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import ONE_ENGINE, Lend
from .harness.backend import Call
from .harness.client import PLAIN_BODY, connected
from .harness.message import LAST_CHUNK, Header, chunk
from .harness.rig import Rig
from .test_g2_errors import KEY, key_file

HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
ADDED_TO_REQUESTS = {b"x-forwarded-for", b"x-request-id", b"traceparent", b"tracestate", b"content-length"}
ADDED_TO_RESPONSES = {
    b"x-request-id",
    b"date",
    b"server",
    b"content-length",
    b"transfer-encoding",
    b"connection",
}

TOKEN = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=20).map(str.encode)
VALUE = st.binary(max_size=60).map(
    lambda raw: bytes(b for b in raw if b == 9 or 32 <= b < 127 or b >= 128).strip(b" \t")
)
HEADERS = st.lists(st.tuples(TOKEN.map(lambda token: b"X-T-" + token), VALUE), max_size=12)
PATH = st.text(
    string.ascii_letters + string.digits + "/-._~!$&'()*+,;=:@%[]|^\"<>{}`\\", min_size=0, max_size=60
).map(lambda text: b"/v1/" + text.encode())
THOROUGH = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def folded(headers: tuple[Header, ...] | list[Header], without: set[bytes]) -> list[Header]:
    return [(name.lower(), value) for name, value in headers if name.lower() not in without]


@given(headers=HEADERS, body=st.binary(max_size=3000))
@THOROUGH
async def test_g4_any_request_headers_and_body_arrive_in_order_and_unchanged(
    warm: Rig, headers: list[Header], body: bytes
) -> None:
    warm.backend.reset()
    reply = await warm.gateway.ask(headers=headers, body=body)
    assert reply.status == 200
    call = await warm.backend.call()
    assert call.data == body
    sent = [(b"host", b"model.test"), *folded(headers, HOP_BY_HOP)]
    assert folded(call.head.headers, ADDED_TO_REQUESTS) == sent


@given(
    headers=HEADERS,
    body=st.binary(max_size=3000),
    status=st.sampled_from([200, 201, 202, 400, 418, 500, 599]),
)
@THOROUGH
async def test_g4_any_response_headers_and_body_arrive_in_order_and_unchanged(
    warm: Rig, headers: list[Header], body: bytes, status: int
) -> None:
    warm.backend.reset()

    async def script(call: Call) -> None:
        call.reply(body, status=b"%d Odd Reason" % status, headers=headers)

    warm.backend.script = script
    reply = await warm.gateway.ask()
    assert reply.status == status
    assert reply.data == body
    assert reply.head.length == len(body)
    assert folded(reply.head.headers, ADDED_TO_RESPONSES) == folded(headers, HOP_BY_HOP)


@given(target=PATH, query=st.none() | PATH)
@THOROUGH
async def test_g4_raw_paths_and_queries_arrive_unchanged(
    warm: Rig, target: bytes, query: bytes | None
) -> None:
    warm.backend.reset()
    whole = target if query is None else target + b"?" + query
    reply = await warm.gateway.ask(target=whole)
    assert reply.status == 200
    assert (await warm.backend.call()).head.target == whole


@pytest.mark.parametrize(
    "target",
    [
        b"//v1//models/../x",
        b"/v1/./../..//etc",
        b"/v1/a%2Fb%2fc%00%zz",
        b"/v1/x;p=1;q?x=1;y=2&z",
        b"/v1/x?a=b?c=d",
        b"/v1/%C5%BC%c3%b3",
        b"/healthz/x",
        b"/noctaya/queue/",
        b"/metricsx",
        b"//healthz",
        b"/%68ealthz",
        b"/healthz;x",
        b"/version",
    ],
)
async def test_g4_unclean_paths_are_the_backends_business(warm: Rig, target: bytes) -> None:
    reply = await warm.gateway.ask(target=target)
    assert reply.status == 200
    assert (await warm.backend.call()).head.target == target


@ONE_ENGINE
async def test_g4_an_empty_query_stays(warm: Rig) -> None:
    """ASGI has no word for it."""
    assert (await warm.gateway.ask(target=b"/v1/x?")).status == 200
    assert (await warm.backend.call()).head.target == b"/v1/x?"


async def test_g4_hop_by_hop_headers_stop_at_the_gateway(warm: Rig) -> None:
    await warm.gateway.ask(
        headers=[
            (b"Connection", b"keep-alive, X-Private , x-second"),
            (b"Connection", b"X-Third"),
            (b"X-Private", b"1"),
            (b"X-Second", b"2"),
            (b"X-THIRD", b"3"),
            (b"X-Public", b"4"),
            (b"Keep-Alive", b"timeout=5"),
            (b"Proxy-Connection", b"keep-alive"),
            (b"Proxy-Authorization", b"Basic eA=="),
            (b"TE", b"trailers, deflate"),
            (b"Trailer", b"X-Sum"),
        ]
    )
    head = (await warm.backend.call()).head
    names = {name.lower() for name, _ in head.headers}
    assert b"x-public" in names
    assert not names & {b"x-private", b"x-second", b"x-third", b"keep-alive", b"proxy-connection", b"trailer"}
    assert not names & {b"proxy-authorization"}
    assert head.one("te") in {None, b"trailers"}


async def test_g4_response_hop_by_hop_headers_stop_at_the_gateway(warm: Rig) -> None:
    async def script(call: Call) -> None:
        call.reply(
            headers=[
                (b"Connection", b"X-Private, keep-alive"),
                (b"X-Private", b"1"),
                (b"Keep-Alive", b"timeout=1"),
                (b"Proxy-Authenticate", b"Basic"),
                (b"Upgrade", b"h2c"),
                (b"X-Public", b"2"),
            ]
        )

    warm.backend.script = script
    names = {name.lower() for name, _ in (await warm.gateway.ask()).head.headers}
    assert b"x-public" in names
    assert not names & {b"x-private", b"keep-alive", b"proxy-authenticate", b"upgrade"}


async def test_g4_content_length_named_by_connection_does_not_unframe_the_body(warm: Rig) -> None:
    reply = await warm.gateway.ask(
        headers=[(b"Connection", b"Content-Length, Host, Transfer-Encoding")], body=PLAIN_BODY
    )
    assert reply.status in {200, 400}
    if reply.status == 200:
        assert (await warm.backend.call()).data == PLAIN_BODY
    assert (await warm.gateway.ask()).status == 200


async def test_g4_forwarding_headers_are_appended_to_or_left_alone(warm: Rig) -> None:
    await warm.gateway.ask(
        headers=[
            (b"X-Forwarded-For", b"203.0.113.7"),
            (b"X-Forwarded-Host", b"public.example"),
            (b"X-Forwarded-Proto", b"https"),
            (b"Forwarded", b"for=203.0.113.7"),
        ],
        host=b"public.example:443",
    )
    head = (await warm.backend.call()).head
    assert b", ".join(head.all("x-forwarded-for")) == b"203.0.113.7, 127.0.0.1"
    assert head.one("x-forwarded-host") == b"public.example"
    assert head.one("x-forwarded-proto") == b"https"
    assert head.one("forwarded") == b"for=203.0.113.7"
    assert head.one("host") == b"public.example:443"


async def test_g4_nothing_is_invented(warm: Rig) -> None:
    await warm.gateway.ask()
    head = (await warm.backend.call()).head
    assert head.one("x-forwarded-for") == b"127.0.0.1"
    invented = {name.lower() for name, _ in head.headers} - ADDED_TO_REQUESTS - {b"host", b"connection"}
    assert invented == set()


async def test_g4_authorization_passes_when_the_gateway_has_no_key(warm: Rig) -> None:
    sent: list[Header] = [(b"Authorization", b"Bearer theirs"), (b"X-Api-Key", b"k"), (b"Api-Key", b"a")]
    await warm.gateway.ask(headers=sent)
    assert folded((await warm.backend.call()).head.headers, ADDED_TO_REQUESTS | {b"host"}) == folded(
        sent, set()
    )


async def test_g4_credentials_stop_at_the_gateway_when_it_checks_them(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    for headers in (
        [(b"Authorization", b"Bearer " + KEY)],
        [(b"X-API-Key", KEY)],
        [(b"api-key", KEY)],
        [(b"x-api-key", KEY), (b"Authorization", b"Bearer other"), (b"API-KEY", b"third")],
    ):
        rig.backend.reset()
        reply = await rig.gateway.ask(headers=headers)
        if reply.status == 200:
            raw = (await rig.backend.call()).head.raw.lower()
            assert b"authorization" not in raw
            assert b"api-key" not in raw
        else:
            assert reply.status == 401
            assert len(headers) > 1


BODIES = {
    "big integers and key order": b'{"z":12345678901234567890123,"a":1.0,"m":1e400,"z":2}',
    "not json": b"\x00\x01\xff{",
    "multipart": (
        b'--b0\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n\x00\r\n'
        b"--b1\r\n\xff\r\n--b0--\r\n"
    ),
    "empty": b"",
    "looks like http": b"POST /x HTTP/1.1\r\nHost: a\r\n\r\n0\r\n\r\n",
    "just under 1 MiB": b"a" * ((1 << 20) - 1),
    "1 MiB": b"b" * (1 << 20),
    "just over 1 MiB": b"c" * ((1 << 20) + 1),
    "24 MiB": bytes(range(256)) * (24 << 12),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("state", ["warm", "cold"])
async def test_g4_bodies_arrive_unchanged(lend: Lend, body: bytes, framing: str, state: str) -> None:
    rig = await lend(healthy=state == "warm", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    content: Header = (b"Content-Type", b"multipart/form-data; boundary=b0")
    async with connected(rig.gateway.port) as client:
        if framing == "length":
            client.request(headers=[content], body=body)
        else:
            client.request(headers=[content, (b"Transfer-Encoding", b"chunked")], body=None)
            for start in range(0, len(body), 100_001):
                client.send(chunk(body[start : start + 100_001]))
            client.send(LAST_CHUNK)
        if state == "cold":
            await client.wire.flush()
            rig.backend.set_healthy(True)
        reply = await client.reply(within=30)
    assert reply.status == 200
    call = await rig.backend.call()
    assert hashlib.sha256(call.data).digest() == hashlib.sha256(body).digest()
    assert call.head.one("content-type") == content[1]
    assert (call.head.length is None) == call.head.chunked or body == b""


async def test_g4_large_response_arrives_unchanged(warm: Rig) -> None:
    big = bytes(range(256)) * (20 << 12)

    async def script(call: Call) -> None:
        call.reply(big)

    warm.backend.script = script
    reply = await warm.gateway.ask(within=30)
    assert hashlib.sha256(reply.data).digest() == hashlib.sha256(big).digest()
