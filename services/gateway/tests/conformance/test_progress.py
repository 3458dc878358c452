"""Progress in heartbeats of a held stream: on request, one comment line, not after the first byte (G1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from .conftest import COLD, Start
from .harness.backend import SSE_PIECES, Call
from .harness.client import STREAM_BODY, Client, open_client
from .harness.events import HEARTBEAT, error_tail
from .harness.rig import Rig

SSE = b"".join(SSE_PIECES)
ASKS = [(b"X-Noctaya-Progress", b"1")]
PREFIX = b": progress "


async def held(rig: Rig, **options: Any) -> Client:
    client = await open_client(rig.gateway.port)
    client.request(body=STREAM_BODY, **options)
    assert (await client.head()).status == 200
    return client


def told(comment: bytes) -> dict[str, Any]:
    assert comment.startswith(PREFIX)
    assert comment.endswith(b"}\n")
    assert comment.count(b"\n") == 1
    found: dict[str, Any] = json.loads(comment[len(PREFIX) :])
    return found


async def test_g1_a_request_that_asks_is_told_phase_and_seconds(cold: Rig) -> None:
    client = await held(cold, headers=ASKS)
    first, second = told(await client.chunk()), told(await client.chunk())
    assert first.keys() == {"phase", "seconds"}
    assert first["phase"] in {"starting", "loading"}
    assert 0.2 <= first["seconds"] <= second["seconds"]
    cold.backend.set_healthy(True)
    body = await client.stream_to_end()
    assert body.complete
    *comments, rest = body.data.split(b"}\n", body.data.count(PREFIX))
    assert rest == SSE
    assert all(comment.startswith(PREFIX) for comment in comments)
    client.leave()


async def test_g1_no_progress_after_the_first_backend_byte(cold: Rig) -> None:
    async def slow(call: Call) -> None:
        await call.stream(pause=0.6)

    cold.backend.script = slow
    client = await held(cold, headers=ASKS)
    cold.backend.set_healthy(True)
    body = await client.stream_to_end()
    assert body.data[body.data.rindex(b"}\n", 0, body.data.index(SSE) + 1) + 2 :] == SSE
    client.leave()


@pytest.mark.parametrize("value", [b"off", b"0", b"FALSE"])
async def test_a_service_tells_everybody_but_who_does_not_want_it(start: Start, value: bytes) -> None:
    rig = await start(healthy=False, NOCTAYA_PROGRESS="true", **COLD)
    wants, declines = await held(rig), await held(rig, headers=[(b"x-noctaya-progress", value)])
    told(await wants.chunk())
    assert await declines.chunk() == HEARTBEAT
    for client in (wants, declines):
        client.leave()


async def test_nobody_is_told_who_did_not_ask(cold: Rig) -> None:
    client = await held(cold)
    assert await client.chunk() == HEARTBEAT
    client.leave()


async def test_a_download_is_told_with_the_time_it_takes(start: Start, tmp_path: Path) -> None:
    notice = tmp_path / "prewarming"
    ready = datetime.now(UTC) + timedelta(seconds=40)
    notice.write_text(json.dumps({"message": "weights\n(15 GB)", "readyAt": ready.isoformat()}))
    rig = await start(healthy=False, NOCTAYA_PREWARMING_FILE=str(notice), **COLD)
    client = await held(rig, headers=ASKS)
    first = told(await client.chunk())
    assert (first["phase"], first["message"]) == ("prewarming", "weights\n(15 GB)")
    assert 20 < first["secondsLeft"] <= 40
    client.leave()


async def test_g2_an_error_after_progress_is_an_event_of_its_own(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="100ms", NOCTAYA_ACTIVATION_TIMEOUT="1s")
    client = await held(rig, headers=ASKS)
    body = await client.stream_to_end()
    assert body.complete
    assert error_tail(body.data)["code"] == "activation_timeout"
    client.leave()
