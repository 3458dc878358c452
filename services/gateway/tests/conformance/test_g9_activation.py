"""G9: a doomed activation fails early and does not keep an accelerator."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from .conftest import COLD, Lend, Start
from .harness.client import STREAM_BODY, Reply, connected, open_client
from .harness.events import error_tail, split_heartbeats
from .harness.process import eventually
from .harness.rig import Rig
from .test_g2_errors import assert_retry_after


async def held(rig: Rig, count: int) -> bool:
    return await rig.gateway.admitted() == count


async def no_demand(rig: Rig) -> bool:
    return await rig.gateway.demand() == 0


async def test_g9_held_requests_are_told_when_the_activation_is_doomed(start: Start, tmp_path: Path) -> None:
    failure = tmp_path / "failure"
    failure.write_text("")
    rig = await start(healthy=False, NOCTAYA_ACTIVATION_FAILURE_FILE=str(failure), **COLD)
    plain, stream = await open_client(rig.gateway.port), await open_client(rig.gateway.port)
    plain.request()
    stream.request(body=STREAM_BODY)
    await stream.head()
    await eventually(lambda: held(rig, 2))
    told = time.monotonic()
    failure.write_text("ImagePullFailed: no such image\n")
    reply = await plain.reply()
    assert time.monotonic() - told < 5
    assert reply.status == 503
    assert reply.error["code"] == "activation_failed"
    assert "no such image" in reply.error["message"]
    assert_retry_after(reply)
    body = await stream.stream_to_end()
    error = error_tail(split_heartbeats(body.data)[1])
    assert error["code"] == "activation_failed"
    assert "no such image" in error["message"]
    await eventually(lambda: no_demand(rig), within=5)
    plain.leave()
    stream.leave()


async def test_g9_an_old_failure_does_not_doom_a_new_activation(start: Start, tmp_path: Path) -> None:
    failure = tmp_path / "failure"
    failure.write_text("OOMKilled last week\n")
    rig = await start(healthy=False, NOCTAYA_ACTIVATION_FAILURE_FILE=str(failure), **COLD)
    async with connected(rig.gateway.port) as client:
        client.request()
        await eventually(lambda: held(rig, 1))
        assert await client.wire.silent(1)
        rig.backend.set_healthy(True)
        assert (await client.reply()).status == 200


async def failed_once(lend: Lend) -> Rig:
    rig = await lend(healthy=False, NOCTAYA_ACTIVATION_TIMEOUT="400ms")
    first = await rig.gateway.ask()
    assert first.error["code"] == "activation_timeout"
    await eventually(lambda: no_demand(rig), within=5)
    return rig


async def test_g9_after_a_failure_new_activations_back_off_without_demand(lend: Lend) -> None:
    rig = await failed_once(lend)
    for body in (b"{}", STREAM_BODY):
        begun = time.monotonic()
        reply: Reply = await rig.gateway.ask(body=body)
        assert reply.status == 503
        assert reply.error["code"] == "activation_failed"
        assert_retry_after(reply)
        assert time.monotonic() - begun < 5
    assert await rig.gateway.demand() == 0
    assert await rig.gateway.admitted() == 0


async def test_g9_endless_retries_do_not_keep_demand_up(lend: Lend) -> None:
    rig = await failed_once(lend)
    seen = []
    for _ in range(30):
        await rig.gateway.ask()
        seen.append(await rig.gateway.demand())
        await asyncio.sleep(0.02)
    assert set(seen) == {0}


async def test_g9_readiness_forgets_failures(lend: Lend) -> None:
    rig = await failed_once(lend)
    await rig.set_healthy(True)
    assert (await rig.gateway.ask()).status == 200
    await rig.set_healthy(False)
    reply = await rig.gateway.ask()
    assert reply.error["code"] == "activation_timeout", "a fresh activation was allowed"


async def test_g9_retry_after_is_whole_seconds_from_1_to_60(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_COLDSTART_MODE="reject", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    for method, body in ((b"GET", None), (b"POST", b"{}")):
        reply = await rig.gateway.ask(method, b"/", body=body)
        assert_retry_after(reply)


async def test_g9_retry_after_is_jittered_from_the_first_refusal_on(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_COLDSTART_MODE="reject", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    assert {await retry_after(rig) for _ in range(40)} == {10, 11}


async def test_g9_retry_after_is_jittered_after_a_failure(lend: Lend) -> None:
    rig = await failed_once(lend)
    assert len({await retry_after(rig) for _ in range(40)}) > 1


async def test_g9_retry_after_follows_observed_activations(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_COLDSTART_MODE="reject", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    unknown = [await retry_after(rig) for _ in range(20)]
    for _ in range(3):
        assert (await rig.gateway.ask()).status == 503
        await rig.set_healthy(True)
        await rig.set_healthy(False)
    quick = [await retry_after(rig) for _ in range(20)]
    assert sum(quick) / 20 < sum(unknown) / 20
    assert max(quick) <= 3


async def retry_after(rig: Rig) -> int:
    reply = await rig.gateway.ask(b"GET", b"/", body=None)
    return int(reply.head.one("retry-after") or b"")


async def test_g9_reject_mode_wakes_and_its_lease_ends(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_COLDSTART_MODE="reject", NOCTAYA_ACTIVATION_TIMEOUT="700ms")
    assert (await rig.gateway.ask()).error["code"] == "cold_start"
    assert await rig.gateway.demand() == 1
    await eventually(lambda: no_demand(rig), within=5)


@pytest.mark.parametrize("kind", ["plain", "stream"])
async def test_g9_a_lease_outlives_its_client_but_not_its_time(start: Start, kind: str) -> None:
    rig = await start(healthy=False, NOCTAYA_ACTIVATION_TIMEOUT="1s", NOCTAYA_HEARTBEAT_INTERVAL="100ms")
    client = await open_client(rig.gateway.port)
    client.request(body=STREAM_BODY if kind == "stream" else b"{}")
    await eventually(lambda: held(rig, 1))
    client.leave()
    await eventually(lambda: held(rig, 0))
    assert await rig.gateway.demand() == 1
    await eventually(lambda: no_demand(rig), within=5)


async def test_g9_a_later_activation_is_told_by_what_is_written_again(start: Start, tmp_path: Path) -> None:
    failure, new = tmp_path / "failure", tmp_path / "new"
    failure.write_text("no such image")
    rig = await start(healthy=False, NOCTAYA_ACTIVATION_FAILURE_FILE=str(failure), **COLD)
    async with connected(rig.gateway.port) as client:
        client.request()
        await eventually(lambda: held(rig, 1))
        assert await client.wire.silent(1)
        new.write_text("no such image ")
        new.replace(failure)
        told = time.monotonic()
        reply = await client.reply()
        assert time.monotonic() - told < 5
        assert (reply.status, reply.error["code"]) == (503, "activation_failed")
        assert "no such image." in reply.error["message"]
