"""What openai-python, openai-node and openai-go make of the gateway, cold, warm and failing.

openai-go stands here twice: before 3.43 it parses a blank line after a comment as an empty JSON event (G1).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

import pytest

from ..conftest import COLD, Lend, Start
from ..harness.backend import SSE_PIECES, Call, hold
from ..harness.client import connected
from ..harness.judges import GoJudge, NodeJudge
from ..harness.openai_python import PythonJudge
from ..harness.process import eventually
from ..harness.rig import Rig
from ..test_g2_errors import KEY, key_file


class Judge(Protocol):
    async def ask(self, port: int, scenario: str, *, key: str = "none") -> dict[str, Any]: ...


GO = pytest.mark.toolchain("go")
NODE = pytest.mark.toolchain("node", "npm")
JUDGES = pytest.mark.parametrize(
    "judge",
    [
        pytest.param(PythonJudge(), id="openai-python"),
        pytest.param(NodeJudge(), id="openai-node", marks=NODE),
        pytest.param(GoJudge("go.mod"), id="openai-go", marks=GO),
        pytest.param(GoJudge("legacy.mod"), id="openai-go before 3.43", marks=GO),
    ],
)
pytestmark = [pytest.mark.timeout(600), JUDGES]

REPLY = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"hello","refusal":null},"logprobs":null}]}'
)


async def answer(call: Call) -> None:
    if b'"stream":true' in call.data.replace(b" ", b""):
        await call.stream()
    else:
        call.reply(REPLY)


async def admitted(rig: Rig, count: int = 1) -> bool:
    return await rig.gateway.admitted() == count


async def test_g1_judge_reads_a_cold_stream_through_its_heartbeats(lend: Lend, judge: Judge) -> None:
    rig = await lend(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="60ms", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    rig.backend.script = answer
    asking = asyncio.create_task(judge.ask(rig.gateway.port, "stream"))
    await eventually(lambda: admitted(rig), within=420)
    await asyncio.sleep(0.5)
    rig.backend.set_healthy(True)
    assert await asking == {"text": "hello", "finish": "stop", "chunks": 3}


async def test_g1_judge_reads_a_cold_stream_through_progress(lend: Lend, judge: Judge) -> None:
    rig = await lend(
        healthy=False,
        NOCTAYA_PROGRESS="true",
        NOCTAYA_HEARTBEAT_INTERVAL="60ms",
        NOCTAYA_ACTIVATION_TIMEOUT="60s",
    )
    rig.backend.script = answer
    asking = asyncio.create_task(judge.ask(rig.gateway.port, "stream"))
    await eventually(lambda: admitted(rig), within=420)
    await asyncio.sleep(0.5)
    rig.backend.set_healthy(True)
    assert await asking == {"text": "hello", "finish": "stop", "chunks": 3}


async def test_g2_judge_sees_a_limit_of_its_key_as_rate_limit_error(
    start: Start, judge: Judge, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("sk-web name=web rpm=1\n")
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=str(keys))
    rig.backend.script = answer
    assert (await judge.ask(rig.gateway.port, "plain", key="sk-web"))["text"] == "hello"
    result = await judge.ask(rig.gateway.port, "plain", key="sk-web")
    failed(result, 429, "rate_limit_exceeded", "RateLimitError")


async def test_judge_reads_a_cold_plain_answer(lend: Lend, judge: Judge) -> None:
    rig = await lend(healthy=False, **COLD)
    rig.backend.script = answer
    asking = asyncio.create_task(judge.ask(rig.gateway.port, "plain"))
    await eventually(lambda: admitted(rig), within=420)
    rig.backend.set_healthy(True)
    result = await asking
    assert (result["text"], result["finish"]) == ("hello", "stop")


async def test_g3_judge_lists_models_of_a_cold_service(lend: Lend, judge: Judge) -> None:
    rig = await lend(healthy=False, NOCTAYA_SERVICE_NAME="tiny", NOCTAYA_MODEL_IDS="org/Tiny-135M", **COLD)
    assert (await judge.ask(rig.gateway.port, "models"))["models"] == ["tiny", "org/Tiny-135M"]
    assert await rig.gateway.demand() == 0


def failed(result: dict[str, Any], status: int | None, code: str, kind: str | None = None) -> None:
    error = result["error"]
    assert error["code"] == code
    assert error["message"]
    if status is not None:
        assert error["status"] == status
    if kind is not None and not error["class"].startswith("*"):
        assert error["class"] == kind


async def test_g2_judge_sees_a_bad_key_as_authentication_error(
    lend: Lend, judge: Judge, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    rig.backend.script = answer
    for scenario in ("plain", "stream"):
        result = await judge.ask(rig.gateway.port, scenario, key="wrong")
        failed(result, 401, "invalid_api_key", "AuthenticationError")
    assert (await judge.ask(rig.gateway.port, "plain", key=KEY.decode()))["text"] == "hello"


async def test_g2_judge_sees_a_full_queue_as_rate_limit_error(lend: Lend, judge: Judge) -> None:
    rig = await lend(NOCTAYA_MAX_QUEUE="1")
    rig.backend.script = hold
    async with connected(rig.gateway.port) as first:
        first.request()
        await rig.backend.call()
        for scenario in ("plain", "stream"):
            failed(await judge.ask(rig.gateway.port, scenario), 429, "queue_full", "RateLimitError")


async def test_g2_judge_sees_a_refused_cold_start_as_server_error(lend: Lend, judge: Judge) -> None:
    rig = await lend(healthy=False, NOCTAYA_COLDSTART_MODE="reject")
    for scenario in ("plain", "stream"):
        failed(await judge.ask(rig.gateway.port, scenario), 503, "cold_start", "InternalServerError")


async def test_g2_judge_sees_an_error_on_a_committed_stream(start: Start, judge: Judge) -> None:
    rig = await start(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="60ms", NOCTAYA_ACTIVATION_TIMEOUT="600ms")
    failed_stream = await judge.ask(rig.gateway.port, "stream")
    assert "error" in failed_stream
    assert "activation" in str(failed_stream["error"]).lower()


async def test_g2_judge_sees_a_backend_error_after_commit(lend: Lend, judge: Judge) -> None:
    rig = await lend(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="60ms", NOCTAYA_ACTIVATION_TIMEOUT="60s")

    async def refuse(call: Call) -> None:
        call.reply(
            b'{"error":{"message":"context too long","type":"BadRequestError","param":null,"code":"x"}}',
            status=b"400 Bad Request",
        )

    rig.backend.script = refuse
    asking = asyncio.create_task(judge.ask(rig.gateway.port, "stream"))
    await eventually(lambda: admitted(rig), within=420)
    await asyncio.sleep(0.3)
    rig.backend.set_healthy(True)
    assert "context too long" in str((await asking)["error"])


@pytest.mark.parametrize("torn", [False, True], ids=["between events", "inside an event"])
async def test_g2_judge_sees_a_backend_that_dies_mid_stream(lend: Lend, judge: Judge, torn: bool) -> None:
    rig = await lend()

    async def die(call: Call) -> None:
        call.send_event_stream_head()
        call.send_chunk(SSE_PIECES[0])
        if torn:
            call.send_chunk(SSE_PIECES[1][:25])
        await asyncio.sleep(0.1)
        call.wire.close()

    rig.backend.script = die
    result = await judge.ask(rig.gateway.port, "stream")
    assert "error" in result, "a stream that died must not look like one that ended"
