"""While weights are downloaded: held who can wait, refused who can't, and nobody left in the dark."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from noctaya_gateway.prewarming import INTERVAL

from .conftest import COLD, Start
from .harness.client import STREAM_BODY, connected
from .harness.events import error_tail, split_heartbeats
from .harness.process import eventually
from .harness.rig import Rig

HELD = "NOCTAYA_ACTIVATION_TIMEOUT"


def tell(file: Path, left: float | None, **more: str) -> None:
    told = {"message": "the weights of the model are being downloaded (15.0 GiB)", **more}
    if left is not None:
        told["readyAt"] = (datetime.now(UTC) + timedelta(seconds=left)).isoformat()
    new = file.with_suffix(".new")
    new.write_text(json.dumps(told))
    new.replace(file)


async def held(rig: Rig, count: int) -> bool:
    return await rig.gateway.admitted() == count


async def test_a_download_longer_than_the_wait_refuses_at_once_and_makes_no_demand(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "prewarming"
    tell(file, 1200)
    rig = await start(healthy=False, NOCTAYA_PREWARMING_FILE=str(file), **COLD)
    for body in (b"{}", STREAM_BODY):
        reply = await rig.gateway.ask(body=body)
        assert (reply.status, reply.error["code"]) == (503, "prewarming")
        assert "being downloaded (15.0 GiB)" in reply.error["message"]
        assert 1190 <= int(reply.head.one("retry-after") or b"0") <= 1320
    assert await rig.gateway.demand() == 0
    assert await rig.gateway.admitted() == 0
    listed = (await rig.gateway.ask(b"GET", b"/v1/models", body=None)).json()
    assert [model["noctaya"] for model in listed["data"]] == [{"state": "prewarming"}]
    safe = await rig.gateway.ask(b"GET", b"/anything", body=None)
    assert (safe.status, safe.error["code"]) == (503, "prewarming")


async def test_a_download_that_ends_in_time_is_waited_for(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "prewarming"
    tell(file, 1)
    rig = await start(healthy=False, NOCTAYA_PREWARMING_FILE=str(file), **COLD)
    async with connected(rig.gateway.port) as client:
        client.request()
        await eventually(lambda: held(rig, 1))
        assert await rig.gateway.demand() == 1
        file.write_text("")
        rig.backend.set_healthy(True)
        assert (await client.reply()).status == 200


async def test_a_wait_in_vain_ends_with_the_reason_and_the_next_request_is_not_held_against(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "prewarming"
    tell(file, None)
    rig = await start(healthy=False, NOCTAYA_PREWARMING_FILE=str(file), **{**COLD, HELD: "1500ms"})
    for _ in range(2):
        begun = time.monotonic()
        reply = await rig.gateway.ask()
        assert (reply.status, reply.error["code"]) == (503, "prewarming")
        assert "did not become ready" in reply.error["message"]
        assert time.monotonic() - begun >= 1.4
    async with connected(rig.gateway.port) as client:
        client.request(body=STREAM_BODY)
        await client.head()
        body = await client.stream_to_end()
        assert error_tail(split_heartbeats(body.data)[1])["code"] == "prewarming"


async def test_reject_mode_refuses_with_the_same_words(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "prewarming"
    tell(file, 10)
    rig = await start(
        healthy=False, NOCTAYA_PREWARMING_FILE=str(file), NOCTAYA_COLDSTART_MODE="reject", **COLD
    )
    reply = await rig.gateway.ask()
    assert (reply.status, reply.error["code"]) == (503, "prewarming")
    assert 1 <= int(reply.head.one("retry-after") or b"0") <= 11


async def test_who_asks_after_the_download_is_over_is_held_although_it_was_to_last(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "prewarming"
    tell(file, 1200)
    rig = await start(healthy=False, NOCTAYA_PREWARMING_FILE=str(file), **COLD)
    assert (await rig.gateway.ask()).error["code"] == "prewarming"
    file.write_text("")
    await asyncio.sleep(2 * INTERVAL)
    async with connected(rig.gateway.port) as client:
        client.request()
        await eventually(lambda: held(rig, 1))
        rig.backend.set_healthy(True)
        assert (await client.reply()).status == 200


async def test_g9_a_download_that_failed_is_told_at_once_or_when_the_next_try_brought_nothing_in_time(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "prewarming"
    tell(file, 3600, state="failed", message="no access to the weights")
    rig = await start(healthy=False, NOCTAYA_PREWARMING_FILE=str(file), **{**COLD, HELD: "1500ms"})
    reply = await rig.gateway.ask()
    assert (reply.status, reply.error["code"]) == (503, "activation_failed")
    assert reply.error["message"].startswith("No access to the weights; that is tried again in about")
    assert int(reply.head.one("retry-after") or b"0") == 60
    assert await rig.gateway.demand() == 0
    tell(file, 1, state="failed", message="no access to the weights")
    await asyncio.sleep(2 * INTERVAL)
    begun = time.monotonic()
    reply = await rig.gateway.ask()
    assert time.monotonic() - begun >= 1.4
    assert (reply.status, reply.error["code"]) == (503, "activation_failed")
    assert "did not become ready" in reply.error["message"]
    assert "no access to the weights" in reply.error["message"]
