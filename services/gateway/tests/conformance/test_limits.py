"""Limits of client keys: before body, slot and wake-up; told as OpenAI's clients know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import COLD, ONE_ENGINE, Start
from .harness.backend import hold
from .harness.client import connected
from .harness.message import Header
from .harness.process import GatewayExitError, eventually
from .harness.rig import Rig

WEB: Header = (b"Authorization", b"Bearer sk-web")
BATCH: Header = (b"Authorization", b"Bearer sk-batch")
RATE = "noctaya_gateway_key_requests_total"


def keys(tmp_path: Path, content: str) -> str:
    path = tmp_path / "keys"
    path.write_text(content)
    return str(path)


async def test_requests_a_minute_are_limited_by_key_and_told_in_headers(start: Start, tmp_path: Path) -> None:
    path = keys(tmp_path, "sk-web name=web rpm=2\nsk-batch name=batch\n")
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=path)
    for left in (b"1", b"0"):
        reply = await rig.gateway.ask(headers=[WEB])
        assert (reply.status, reply.head.one("x-ratelimit-remaining-requests")) == (200, left)
    refused = await rig.gateway.ask(headers=[WEB])
    assert (refused.status, refused.error["code"]) == (429, "rate_limit_exceeded")
    assert "web" in refused.error["message"]
    assert 20 < int(refused.head.one("retry-after") or 0) <= 30
    assert refused.head.one("x-ratelimit-limit-requests") == b"2"
    assert refused.head.one("x-ratelimit-remaining-requests") == b"0"
    free = await rig.gateway.ask(headers=[BATCH])
    assert (free.status, free.head.one("x-ratelimit-limit-requests")) == (200, None)
    assert (await rig.gateway.ask(b"GET", b"/v1/models", body=None, headers=[WEB])).status == 200
    assert len(rig.backend.calls) == 4, "the refused request went nowhere, a safe one is not limited"
    assert await rig.gateway.metric(RATE, key="web", result="rate_limited") == 1
    assert await rig.gateway.metric(RATE, key="web", result="admitted") == 2
    rejections = "noctaya_gateway_rejections_total"
    assert await rig.gateway.metric(rejections, reason="rate_limit_exceeded") == 1


async def test_a_refused_request_wakes_nothing_and_its_body_is_not_wanted(
    start: Start, tmp_path: Path
) -> None:
    path = keys(tmp_path, "sk-web name=web concurrent=1\nsk-batch name=batch\n")
    rig = await start(healthy=False, NOCTAYA_CLIENT_API_KEY_FILE=path, **COLD)
    async with connected(rig.gateway.port) as body:
        body.request(headers=[WEB, (b"Content-Length", b"1000000")], body=None)
        assert await body.wire.silent(0.2)

        async with connected(rig.gateway.port) as second:
            second.request(headers=[WEB, (b"Content-Length", b"1000000")], body=None)
            reply = await second.reply()
            assert (reply.status, reply.error["code"]) == (429, "concurrency_limit_exceeded")
            assert int(reply.head.one("retry-after") or 0) >= 1
        assert await rig.gateway.demand() == 0
        assert await rig.gateway.admitted() == 0


async def test_requests_at_a_time_are_given_back_however_they_end(start: Start, tmp_path: Path) -> None:
    path = keys(tmp_path, "sk-web name=web\n")
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=path, NOCTAYA_KEY_CONCURRENT_REQUESTS="1")
    rig.backend.script = hold

    async def in_flight(number: int) -> bool:
        return await rig.gateway.metric("noctaya_gateway_key_in_flight", key="web") == number

    async with connected(rig.gateway.port) as client:
        client.request(headers=[WEB])
        call = await rig.backend.call()
        assert await in_flight(1)
        assert (await rig.gateway.ask(headers=[WEB])).status == 429
        call.reply()
        call.finished.set()
        assert (await client.reply()).status == 200
    await eventually(lambda: in_flight(0))
    async with connected(rig.gateway.port) as client:
        client.request(headers=[WEB])
        await rig.backend.call(2)
    await eventually(lambda: in_flight(0))
    async with connected(rig.gateway.port) as client:
        client.request(headers=[WEB])
        (await rig.backend.call(3)).reply()
        assert (await client.reply()).status == 200


async def test_g10_a_slip_in_the_file_locks_nobody_out_and_shows(start: Start, tmp_path: Path) -> None:
    path = keys(tmp_path, "sk-web name=web\n")
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=path)
    assert await malformed(rig) == 0
    keys(tmp_path, "sk-web name=web\nsk-batch rpm 60\n")
    assert (await rig.gateway.ask(headers=[WEB])).status == 200
    assert (await rig.gateway.ask(headers=[BATCH])).status == 401
    assert await malformed(rig) == 1
    keys(tmp_path, "sk-batch rpm=1\n")
    assert (await rig.gateway.ask(headers=[BATCH])).status == 200
    assert (await rig.gateway.ask(headers=[BATCH])).status == 429
    assert (await rig.gateway.ask(headers=[WEB])).status == 401
    assert await malformed(rig) == 0
    assert "sk-" not in "\n".join(rig.gateway.lines)


async def malformed(rig: Rig) -> float:
    return float(await rig.gateway.metric("noctaya_gateway_key_file_malformed"))


@ONE_ENGINE
async def test_a_key_file_that_can_not_be_understood_stops_the_start(start: Start, tmp_path: Path) -> None:
    with pytest.raises(GatewayExitError) as exited:
        await start(NOCTAYA_CLIENT_API_KEY_FILE=keys(tmp_path, "sk-web rpm=fast\n"))
    assert exited.value.code == 1
    assert "NOCTAYA_CLIENT_API_KEY_FILE: key 1: rpm= is a whole number" in str(exited.value)
    assert "sk-web" not in str(exited.value)
