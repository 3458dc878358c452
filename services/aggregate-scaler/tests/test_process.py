"""The installed console script as a process."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from noctaya_api.externalscaler.client import ExternalScalerClient

SCRIPT = Path(sys.executable).with_name("noctaya-aggregate-scaler")
TOKEN = "t" * 43


def environment(token_file: Path, **changes: str) -> dict[str, str]:
    return {
        "NOCTAYA_AGGREGATOR_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_DEMAND_AUTH_TOKEN_FILE": str(token_file),
        "NOCTAYA_EXPECTED_GATEWAY_MEMBERS": "1",
        **changes,
    }


async def spawn(*arguments: str, env: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        str(SCRIPT),
        *arguments,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def serving(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """The log line that says the process serves, with its ports."""
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while line := await process.stderr.readline():
            entry: dict[str, Any] = json.loads(line)
            if entry["msg"] == "serving":
                return entry
    raise AssertionError("the process ended before it served")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order_with_exit_0(token_file: Path, number: signal.Signals) -> None:
    process = await spawn(env=environment(token_file))
    try:
        ports = await serving(process)
        url = f"http://127.0.0.1:{ports['http_port']}"
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
            report = {"memberID": "a", "sequence": 1, "demand": 2}
            response = await http.post(f"{url}/v1/demand", json=report, headers=headers)
            assert response.status_code == 204
            target = f"127.0.0.1:{ports['grpc_port']}"
            async with ExternalScalerClient(target, metadata={"targetValue": "1"}, timeout=30) as keda:
                stream = keda.stream_is_active()
                assert await anext(stream) is True
                process.send_signal(number)
                async with asyncio.timeout(30):
                    assert all([active async for active in stream])  # ends with OK, or this raises
        assert await asyncio.wait_for(process.wait(), 30) == 0
        assert process.stderr is not None
        rest = [json.loads(line) for line in (await process.stderr.read()).splitlines()]
        assert [entry["msg"] for entry in rest] == ["demand is known", "stopping", "stopped"]
        assert {entry["service"] for entry in rest} == {"noctaya-aggregate-scaler"}
        assert TOKEN not in json.dumps(rest)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_version_is_printed_without_any_setting() -> None:
    process = await spawn("--version", env={})
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert out.decode().startswith("noctaya-aggregate-scaler ")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"NOCTAYA_DEMAND_AUTH_TOKEN_FILE": ""}, "NOCTAYA_DEMAND_AUTH_TOKEN_FILE"),
        ({"NOCTAYA_DEMAND_AUTH_TOKEN_FILE": "/does/not/exist"}, "/does/not/exist"),
        ({"NOCTAYA_MAX_GATEWAY_MEMBERS": "none"}, "NOCTAYA_MAX_GATEWAY_MEMBERS"),
        ({"NOCTAYA_SCALER_TLS_CERT_FILE": "/tls.crt"}, "NOCTAYA_SCALER_TLS_KEY_FILE"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT: must be an http"),
    ],
)
async def test_a_start_that_cannot_be_ends_with_exit_1_and_says_why(
    token_file: Path, changes: dict[str, str], named: str
) -> None:
    process = await spawn(env=environment(token_file, **changes))
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert named in err.decode()
    assert "Traceback" not in err.decode()


async def test_a12_a_short_token_ends_the_start_with_exit_1(token_file: Path) -> None:
    token_file.write_text("x" * 31)  # noqa: ASYNC240
    process = await spawn(env=environment(token_file))
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert "shorter than 32" in err.decode()
    assert "x" * 31 not in err.decode()
