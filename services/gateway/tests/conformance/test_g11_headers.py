"""G11: headers that help: request id, cold start and wait, trace context."""

from __future__ import annotations

import asyncio
import re

import pytest

from .conftest import COLD, Lend
from .harness.client import STREAM_BODY, connected
from .harness.process import eventually
from .harness.rig import Rig
from .test_g2_errors import key_file

TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_g11_a_request_id_is_made_and_shared_with_the_backend(warm: Rig) -> None:
    first, second = await warm.gateway.ask(), await warm.gateway.ask()
    ids = [reply.head.one("x-request-id") for reply in (first, second)]
    assert all(ids)
    assert ids[0] != ids[1]
    assert [call.head.one("x-request-id") for call in warm.backend.calls] == ids


async def test_g11_a_clients_request_id_is_kept(warm: Rig) -> None:
    reply = await warm.gateway.ask(headers=[(b"X-Request-Id", b"mine-42")])
    assert reply.head.one("x-request-id") == b"mine-42"
    assert (await warm.backend.call()).head.one("x-request-id") == b"mine-42"


@pytest.mark.parametrize(
    "target", [b"/healthz", b"/readyz", b"/metrics", b"/noctaya/queue", b"/v1/models", b"/"]
)
async def test_g11_every_response_has_a_request_id(cold: Rig, target: bytes) -> None:
    reply = await cold.gateway.ask(b"GET", target, body=None, headers=[(b"X-Request-Id", b"kept")])
    assert reply.head.one("x-request-id") == b"kept"
    assert (await cold.gateway.ask(b"GET", target, body=None)).head.one("x-request-id")


async def test_g11_errors_have_the_request_id_too(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    reply = await rig.gateway.ask(headers=[(b"X-Request-Id", b"kept")])
    assert (reply.status, reply.head.one("x-request-id")) == (401, b"kept")


async def test_g11_an_absurd_request_id_is_not_echoed_without_bound(warm: Rig) -> None:
    reply = await warm.gateway.ask(headers=[(b"X-Request-Id", b"y" * 10_000)])
    assert reply.status == 200
    assert reply.head.one("x-request-id")


async def test_g11_the_backends_own_request_id_does_not_make_two(warm: Rig) -> None:
    async def script(call: object) -> None:
        call.reply(headers=[(b"X-Request-Id", b"theirs")])  # type: ignore[attr-defined]

    warm.backend.script = script
    reply = await warm.gateway.ask(headers=[(b"X-Request-Id", b"mine")])
    assert reply.head.one("x-request-id") == b"mine"


async def test_g11_a_response_that_waited_says_so(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_ACTIVATION_TIMEOUT="60s", NOCTAYA_HEARTBEAT_INTERVAL="30s")
    for body in (b"{}", STREAM_BODY):
        await rig.set_healthy(False)
        async with connected(rig.gateway.port) as client:
            client.request(body=body)

            async def held() -> bool:
                return await rig.gateway.admitted() == 1

            await eventually(held)
            await asyncio.sleep(0.3)
            rig.backend.set_healthy(True)
            reply = await client.reply()
        assert reply.head.one("x-noctaya-cold-start") == b"true"
        waited = (reply.head.one("x-noctaya-wait-seconds") or b"").decode()
        assert re.fullmatch(r"\d+(\.\d+)?", waited)
        assert 0.25 < float(waited) < 10


async def test_g11_a_committed_stream_says_that_it_waits(cold: Rig) -> None:
    async with connected(cold.gateway.port) as client:
        client.request(body=STREAM_BODY)
        assert (await client.head()).one("x-noctaya-cold-start") == b"true"


async def test_g11_a_warm_response_does_not_claim_to_have_waited(warm: Rig) -> None:
    reply = await warm.gateway.ask()
    assert reply.head.one("x-noctaya-cold-start") is None
    assert reply.head.one("x-noctaya-wait-seconds") is None


@pytest.mark.parametrize("state", ["warm", "cold"])
async def test_g11_trace_context_is_passed_on(lend: Lend, state: str) -> None:
    rig = await lend(healthy=state == "warm", **COLD)
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"traceparent", TRACE), (b"tracestate", b"a=b,c=d"), (b"baggage", b"k=v")])
        await client.wire.flush()
        await asyncio.sleep(0.05)
        rig.backend.set_healthy(True)
        assert (await client.reply()).status == 200
    head = (await rig.backend.call()).head
    assert (head.one("traceparent") or b"")[:35] == TRACE[:35]
    assert head.one("tracestate") == b"a=b,c=d"
    assert head.one("baggage") == b"k=v"
