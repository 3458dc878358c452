"""G2: every error the gateway makes is an OpenAI error, with the contract's status, headers and counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Lend, Start
from .harness.backend import Call, hold
from .harness.client import Reply, connected
from .harness.process import GatewayProcess, eventually
from .harness.rig import Rig

KEY = b"sk-right-key"


def assert_retry_after(reply: Reply) -> None:
    value = reply.head.one("retry-after") or b""
    assert value.isdigit(), reply.head.raw
    assert 1 <= int(value) <= 60


async def counted(gateway: GatewayProcess, *, code: str, reason: str | None) -> tuple[float, float]:
    rejections = 0.0
    if reason is not None:
        rejections = await gateway.metric("noctaya_gateway_rejections_total", reason=reason)
    return await gateway.metric("noctaya_gateway_requests_total", code=code), rejections


@pytest.mark.parametrize("headers", [[], [(b"Authorization", b"Bearer wrong")]], ids=["missing", "wrong"])
async def test_g2_bad_key_is_401_invalid_api_key(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory, headers: list[tuple[bytes, bytes]]
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    before = await counted(rig.gateway, code="401", reason="unauthorized")
    reply = await rig.gateway.ask(headers=headers)
    assert reply.status == 401
    assert reply.error["code"] == "invalid_api_key"
    assert reply.head.one("www-authenticate") == b'Bearer realm="noctaya"'
    assert reply.head.one("x-request-id")
    after = await counted(rig.gateway, code="401", reason="unauthorized")
    assert after == (before[0] + 1, before[1] + 1)
    assert rig.backend.calls == []


def key_file(factory: pytest.TempPathFactory) -> str:
    """The same path for a whole session, so that the gateway using it can be shared."""
    path = factory.getbasetemp() / "shared-client-key"
    path.write_bytes(KEY + b"\n")
    return str(path)


@pytest.mark.parametrize("fault", ["gone", "blank"])
async def test_g2_key_file_lost_at_request_time_is_503_without_challenge(
    start: Start, tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=str(path))
    if fault == "gone":
        path.unlink()
    else:
        path.write_bytes(b" \n\n")
    reply = await rig.gateway.ask(headers=[(b"Authorization", b"Bearer " + KEY)])
    assert reply.status == 503
    assert reply.error["code"] == "authentication_unavailable"
    assert reply.head.one("www-authenticate") is None
    assert await counted(rig.gateway, code="503", reason="authentication_unavailable") == (1, 1)
    path.write_bytes(KEY)
    assert (await rig.gateway.ask(headers=[(b"Authorization", b"Bearer " + KEY)])).status == 200


async def test_g2_full_queue_is_429_queue_full_with_retry_after_5(lend: Lend) -> None:
    rig = await lend(NOCTAYA_MAX_QUEUE="1")
    rig.backend.script = hold
    async with connected(rig.gateway.port) as first:
        first.request()
        await rig.backend.call()
        before = await counted(rig.gateway, code="429", reason="queue_full")
        reply = await rig.gateway.ask()
        assert reply.status == 429
        assert reply.error["code"] == "queue_full"
        assert reply.head.one("retry-after") == b"5"
        after = await counted(rig.gateway, code="429", reason="queue_full")
        assert after == (before[0] + 1, before[1] + 1)


async def test_g2_cold_in_reject_mode_is_503_cold_start(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_COLDSTART_MODE="reject")
    before = await counted(rig.gateway, code="503", reason="cold_start")
    reply = await rig.gateway.ask()
    assert reply.status == 503
    assert reply.error["code"] == "cold_start"
    assert_retry_after(reply)
    after = await counted(rig.gateway, code="503", reason="cold_start")
    assert after == (before[0] + 1, before[1] + 1)


async def test_g2_cold_wait_expired_is_503_activation_timeout(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_ACTIVATION_TIMEOUT="400ms")
    reply = await rig.gateway.ask()
    assert reply.status == 503
    assert reply.error["code"] == "activation_timeout"
    assert_retry_after(reply)
    assert await counted(rig.gateway, code="503", reason="activation_timeout") == (1, 1)


async def refuse_connections(rig: Rig) -> None:
    await rig.backend.refuse()
    for wire in rig.backend.wires:
        wire.close()


async def test_g2_connection_refused_before_a_probe_saw_it_is_a_cold_start(
    start: Start,
) -> None:
    """Nothing was sent yet: the request waits like a cold one and is served by the backend that returns."""
    rig = await start(NOCTAYA_PROBE_INTERVAL="500ms", NOCTAYA_PROBE_FALL="3")
    await refuse_connections(rig)
    async with connected(rig.gateway.port) as client:
        client.request()

        async def waiting() -> bool:
            return await rig.gateway.demand() == 1

        await eventually(waiting)
        await rig.backend.start()
        assert (await client.reply()).status == 200
    assert len(rig.backend.calls) == 1


async def test_g2_connection_refused_in_reject_mode_is_answered_at_once(start: Start) -> None:
    rig = await start(NOCTAYA_PROBE_INTERVAL="500ms", NOCTAYA_PROBE_FALL="3", NOCTAYA_COLDSTART_MODE="reject")
    await refuse_connections(rig)
    reply = await rig.gateway.ask(within=5)
    assert (reply.status, reply.error["code"]) in {(502, "backend_unavailable"), (503, "cold_start")}
    assert str(rig.backend.port).encode() not in reply.data


async def close_at_once(call: Call) -> None:
    call.wire.close()


async def reset_at_once(call: Call) -> None:
    call.wire.reset()


async def speak_something_else(call: Call) -> None:
    call.send(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    call.wire.close()


async def half_a_head(call: Call) -> None:
    call.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
    call.wire.close()


@pytest.mark.parametrize("script", [close_at_once, reset_at_once, speak_something_else, half_a_head])
async def test_g2_backend_that_breaks_before_its_answer_is_502(warm: Rig, script: object) -> None:
    warm.backend.script = script  # type: ignore[assignment]
    before = await counted(warm.gateway, code="502", reason=None)
    reply = await warm.gateway.ask()
    assert reply.status == 502
    assert reply.error["code"] == "backend_unavailable"
    assert (await counted(warm.gateway, code="502", reason=None))[0] == before[0] + 1


async def test_g2_too_large_a_body_is_413_request_too_large(lend: Lend) -> None:
    rig = await lend(NOCTAYA_MAX_BODY_BYTES="1000")
    before = await counted(rig.gateway, code="413", reason=None)
    reply = await rig.gateway.ask(body=b"x" * 1001)
    assert reply.status == 413
    assert reply.error["code"] == "request_too_large"
    assert (await counted(rig.gateway, code="413", reason=None))[0] == before[0] + 1
    assert rig.backend.calls == []
    assert (await rig.gateway.ask(body=b"x" * 1000)).status == 200


async def test_g2_errors_of_the_backend_pass_unchanged_when_warm(warm: Rig) -> None:
    async def refuse(call: Call) -> None:
        call.reply(b'{"detail":"no such thing"}', status=b"422 Unprocessable Entity")

    warm.backend.script = refuse
    before = await counted(warm.gateway, code="422", reason=None)
    reply = await warm.gateway.ask()
    assert (reply.status, reply.data) == (422, b'{"detail":"no such thing"}')
    assert (await counted(warm.gateway, code="422", reason=None))[0] == before[0] + 1


async def test_g2_error_answers_keep_the_connection_usable_when_the_body_was_read(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_COLDSTART_MODE="reject")
    async with connected(rig.gateway.port) as client:
        for _ in range(3):
            assert (await client.exchange()).status == 503
    assert rig.backend.calls == []


async def test_g2_error_to_an_http_1_0_client_has_a_length(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_COLDSTART_MODE="reject")
    reply = await rig.gateway.ask(version=b"HTTP/1.0")
    assert reply.status == 503
    assert reply.head.length == len(reply.data)
    assert not reply.head.chunked


async def test_g2_bad_http_from_a_client_is_400_json_where_there_is_a_request(warm: Rig) -> None:
    async with connected(warm.gateway.port) as client:
        client.send(b"NONSENSE\r\n\r\n")
        head = await client.head()
        assert head.status == 400
        await client.wire.ended()

    async def still_serving() -> bool:
        return bool((await warm.gateway.ask()).status == 200)

    await eventually(still_serving)
