"""G2: once a stream is committed, failures are events, and what was counted is what happened."""

from __future__ import annotations

import json

import pytest

from .conftest import COLD, Start
from .harness.backend import SSE_PIECES, Call, Script
from .harness.client import STREAM_BODY, Client, connected, open_client
from .harness.events import HEARTBEAT, data_of, error_tail, split_heartbeats
from .harness.rig import Rig


async def committed(rig: Rig) -> Client:
    """A held stream whose head and first heartbeat have arrived."""
    client = await open_client(rig.gateway.port)
    client.request(body=STREAM_BODY)
    assert (await client.head()).status == 200
    await client.chunk()
    return client


async def after_wake(rig: Rig, script: Script) -> bytes:
    """What a committed client receives, heartbeats aside, when the woken backend acts by `script`."""
    rig.backend.script = script
    client = await committed(rig)
    rig.backend.set_healthy(True)
    body = await client.stream_to_end()
    assert body.complete
    client.leave()
    return split_heartbeats(body.data)[1]


async def test_g2_activation_timeout_after_commit_is_an_error_event_then_done(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="100ms", NOCTAYA_ACTIVATION_TIMEOUT="1s")
    client = await committed(rig)
    body = await client.stream_to_end()
    assert body.complete
    _, rest = split_heartbeats(body.data)
    first, done = rest.split(b"\n\n", 1)
    assert first.startswith(b"data: {")
    assert done == b"data: [DONE]\n\n"
    error = json.loads(first[len(b"data: ") :])["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["code"] == "activation_timeout"
    assert await rig.gateway.metric("noctaya_gateway_requests_total", code="200") == 1
    assert await rig.gateway.metric("noctaya_gateway_requests_total", code="503") == 0
    assert await rig.gateway.metric("noctaya_gateway_rejections_total", reason="activation_timeout") == 1
    client.leave()


@pytest.mark.parametrize("status", [400, 404, 422, 429, 500, 503])
async def test_g2_backend_error_after_commit_is_reframed_with_its_status(cold: Rig, status: int) -> None:
    async def refuse(call: Call) -> None:
        call.reply(
            b'{"error":{"message":"too long","type":"BadRequestError","param":"messages","code":null}}',
            status=b"%d Whatever" % status,
        )

    rest = await after_wake(cold, refuse)
    error = error_tail(rest)
    assert len(data_of(rest)) == 2
    assert error["message"] == "too long"
    assert error["type"] == "BadRequestError"
    assert error["param"] == "messages"
    assert error["status"] == status


@pytest.mark.parametrize(
    "body",
    [
        b"plain words\n\nwith a blank line",
        b"",
        b"<html>\r\n\r\n</html>",
        b'{"detail":[{"loc":1}]}',
        b"\xff\xfe\x00",
    ],
    ids=["text", "empty", "html", "other json", "binary"],
)
async def test_g2_backend_error_of_any_shape_becomes_one_wellformed_event(cold: Rig, body: bytes) -> None:
    async def refuse(call: Call) -> None:
        call.reply(body, status=b"500 Internal Server Error", headers=[(b"Content-Type", b"text/plain")])

    rest = await after_wake(cold, refuse)
    assert len(data_of(rest)) == 2
    assert error_tail(rest)["status"] == 500


async def test_g2_backend_error_after_commit_may_come_in_chunks(cold: Rig) -> None:
    async def refuse(call: Call) -> None:
        call.send_head(b"400 Bad Request", [(b"Transfer-Encoding", b"chunked")])
        for piece in (b'{"error":{"mess', b'age":"torn","type":"t",', b'"param":null,"code":"c"}}'):
            call.send_chunk(piece)
        call.end_chunks()

    error = error_tail(await after_wake(cold, refuse))
    assert (error["message"], error["code"], error["status"]) == ("torn", "c", 400)


async def test_g2_plain_json_success_after_commit_reaches_the_client_as_an_event(cold: Rig) -> None:
    """From a backend that ignores `stream`."""

    async def plain(call: Call) -> None:
        call.reply(b'{"id":"x","choices":[]}')

    rest = await after_wake(cold, plain)
    assert b'{"id":"x","choices":[]}' in rest


async def die_politely(call: Call) -> None:
    call.wire.close()


async def die_by_reset(call: Call) -> None:
    call.wire.reset()


@pytest.mark.parametrize("death", [die_politely, die_by_reset])
async def test_g2_backend_that_dies_before_its_head_after_commit_is_an_error_event(
    cold: Rig, death: Script
) -> None:
    error = error_tail(await after_wake(cold, death))
    assert error["code"] == "backend_unavailable"


async def test_g2_backend_that_turns_ready_and_refuses_connections_is_waited_for(start: Start) -> None:
    rig = await start(healthy=False, **COLD)
    client = await committed(rig)

    async def last_probe(call: Call) -> None:
        await rig.backend.refuse()
        call.reply(b"", headers=[(b"Connection", b"close")])
        call.wire.close()

    rig.backend.health = last_probe
    await client.stream_until(HEARTBEAT * 2)
    rig.backend.health = None
    rig.backend.set_healthy(True)
    await rig.backend.start()
    body = await client.stream_to_end(within=30)
    assert body.complete
    assert split_heartbeats(body.data)[1] == b"".join(SSE_PIECES)
    client.leave()


CUTS = {
    "between events": SSE_PIECES[0],
    "inside a line": SSE_PIECES[0] + b'data: {"id":"c","cho',
    "after one newline": SSE_PIECES[0] + b"data: {}\n",
    "before any byte": b"",
}


def breaking(sent: bytes, death: Script, *, framing: bytes = b"chunked") -> Script:
    async def script(call: Call) -> None:
        if framing == b"chunked":
            call.send_event_stream_head()
            if sent:
                call.send_chunk(sent)
        else:
            call.send_head(headers=[(b"Content-Type", b"text/event-stream"), (b"Content-Length", b"99999")])
            call.send(sent)
        await call.wire.flush()
        while call.wire.transport.get_write_buffer_size():
            await call.wire.flush()
        await death(call)

    return script


@pytest.mark.parametrize("sent", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("framing", [b"chunked", b"length"])
async def test_g2_backend_that_dies_mid_stream_yields_an_error_event_and_no_finish_reason(
    warm: Rig, sent: bytes, framing: bytes
) -> None:
    warm.backend.script = breaking(sent, die_politely, framing=framing)
    async with connected(warm.gateway.port) as client:
        client.request(body=STREAM_BODY)
        head = await client.head()
        assert head.status == 200
        if head.chunked:
            data = (await client.stream_to_end()).data
        else:
            data = await client.wire.to_end()
    assert data.startswith(sent)
    added = data[len(sent) :]
    assert b"finish_reason" not in added
    events = data_of(data)
    assert events[-1] == b"[DONE]"
    assert json.loads(events[-2])["error"]["code"] == "backend_interrupted"
    if sent == CUTS["inside a line"]:
        assert added.startswith(b"\n\n")


@pytest.mark.parametrize("sent", [CUTS["between events"], CUTS["inside a line"]], ids=["whole", "torn"])
async def test_g2_backend_that_dies_mid_stream_after_commit_yields_an_error_event(
    cold: Rig, sent: bytes
) -> None:
    rest = await after_wake(cold, breaking(sent, die_politely))
    assert rest.startswith(sent)
    assert error_tail(rest)["code"] == "backend_interrupted"


@pytest.mark.parametrize("death", [die_politely, die_by_reset])
async def test_g2_plain_answer_cut_by_the_backend_is_visibly_cut(warm: Rig, death: Script) -> None:
    async def cut(call: Call) -> None:
        call.send_head(headers=[(b"Content-Type", b"application/json"), (b"Content-Length", b"1000")])
        call.send(b"x" * 10)
        await call.wire.silent(0.1)
        await death(call)

    warm.backend.script = cut
    async with connected(warm.gateway.port) as client:
        client.request()
        reply = await client.reply()
        assert not reply.body.complete
        await client.wire.ended()


async def test_g2_chunked_plain_answer_cut_by_the_backend_has_no_last_chunk(warm: Rig) -> None:
    async def cut(call: Call) -> None:
        call.send_head(headers=[(b"Transfer-Encoding", b"chunked")])
        call.send_chunk(b"part")
        await call.wire.silent(0.1)
        call.wire.close()

    warm.backend.script = cut
    async with connected(warm.gateway.port) as client:
        client.request()
        await client.head()
        body = await client.stream_to_end()
        assert not body.complete


async def test_g2_a_stream_with_its_done_is_not_followed_by_an_error(warm: Rig) -> None:
    """A server that closes right after [DONE], without the last chunk, still said all it had to say."""

    async def hurried(call: Call) -> None:
        call.send_event_stream_head()
        for piece in SSE_PIECES:
            call.send_chunk(piece)
        await call.wire.silent(0.1)
        call.wire.close()

    warm.backend.script = hurried
    async with connected(warm.gateway.port) as client:
        client.request(body=STREAM_BODY)
        await client.head()
        body = await client.stream_to_end()
    assert body.data.startswith(b"".join(SSE_PIECES))


@pytest.mark.parametrize("kind", ["stream", "plain"])
async def test_g2_an_answer_that_was_cut_is_counted_once_and_not_as_200(warm: Rig, kind: str) -> None:
    async def cut(call: Call) -> None:
        if kind == "stream":
            call.send_event_stream_head()
            call.send_chunk(SSE_PIECES[0])
        else:
            call.send_head(headers=[(b"Content-Length", b"1000")])
            call.send(b"x")
        await call.wire.silent(0.1)
        call.wire.close()

    warm.backend.script = cut
    before = await counted(warm)
    async with connected(warm.gateway.port) as client:
        client.request(body=STREAM_BODY)
        await client.wire.until(b"0\r\n\r\n") if kind == "stream" else await client.wire.ended()
    after = await counted(warm)
    assert {code for code in after if after[code] != before.get(code, 0)} == {"502"}
    assert after["502"] == before.get("502", 0) + 1


async def counted(rig: Rig) -> dict[str, float]:
    name = "noctaya_gateway_requests_total"
    return {
        dict(labels)["code"]: value
        for (key, labels), value in (await rig.gateway.metrics()).items()
        if key == name
    }
