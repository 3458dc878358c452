"""A service that was put to sleep, as clients see it."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import COLD, Start
from .harness.client import STREAM_BODY, connected
from .harness.process import eventually
from .harness.rig import Rig


def put(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


async def held(rig: Rig, count: int) -> bool:
    return await rig.gateway.admitted() == count


async def test_a_sleeping_service_refuses_at_once_and_its_models_say_so(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "prewarming"
    put(file, json.dumps({"state": "asleep", "message": "the service is put to sleep"}))
    rig = await start(healthy=False, NOCTAYA_PREWARMING_FILE=str(file), **COLD)
    for body in (b"{}", STREAM_BODY):
        reply = await rig.gateway.ask(body=body)
        assert (reply.status, reply.error["code"]) == (503, "asleep")
        assert reply.error["message"] == "The service is put to sleep."
        assert reply.head.one("retry-after") is not None
    assert await rig.gateway.demand() == 0
    listed = (await rig.gateway.ask(b"GET", b"/v1/models", body=None)).json()
    assert [model["noctaya"] for model in listed["data"]] == [{"state": "asleep"}]
    put(file, "")
    rig.backend.set_healthy(True)

    async def served() -> bool:
        return (await rig.gateway.ask()).status == 200

    await eventually(served)


async def test_who_waits_when_the_service_is_put_to_sleep_is_told(start: Start, tmp_path: Path) -> None:
    asleep, failure = tmp_path / "prewarming", tmp_path / "failure"
    rig = await start(
        healthy=False,
        NOCTAYA_PREWARMING_FILE=str(asleep),
        NOCTAYA_ACTIVATION_FAILURE_FILE=str(failure),
        **COLD,
    )
    async with connected(rig.gateway.port) as client:
        client.request()
        await eventually(lambda: held(rig, 1))
        put(asleep, json.dumps({"state": "asleep", "message": "the service is put to sleep"}))
        put(failure, "the service is put to sleep")
        reply = await client.reply()
        assert (reply.status, reply.error["code"]) == (503, "asleep")
    assert await rig.gateway.demand() == 0
