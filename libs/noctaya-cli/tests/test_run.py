"""`noctaya run` for real: the real gateway, real processes, a fake model."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from noctaya_cli.ports import PortPool

from .conftest import FAKE_MODEL, eventually, wait_for

RUNTIME = """
apiVersion: serving.noctaya.io/v1alpha1
kind: InferenceRuntime
metadata: {{name: {name}}}
spec:
  vendor: cpu
  family: custom
  container:
    image: example/fake
    command: ["{python}", "-I", "-S", "{model}"]
    args: ["--port", "8000", {arguments}]
    port: {{}}
  health:
    startup: {{httpGet: {{path: /health, port: http}}, periodSeconds: 1, failureThreshold: 60}}
    readiness: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 1}}
  lifecycle: {{preStopDrain: true}}
---
apiVersion: serving.noctaya.io/v1alpha1
kind: LLMService
metadata: {{name: {name}}}
spec:
  model: {{source: {{uri: "pvc://models/{name}"}}}}
  runtime: {{name: {name}}}
  scaling:
    {{max: {maximum}, target: 1, scaleDownStabilization: {idle}, activationTimeout: 60s, drainTimeout: 30s}}
  endpoint: {{coldStart: {{heartbeatInterval: 100ms}}}}
---
"""


def launch(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, env=environment)


@dataclass
class Run:
    """A `noctaya run` process and what it says in its events file."""

    directory: Path
    manifests: str = ""
    family: list[psutil.Process] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    def add(self, name: str, *arguments: str, maximum: int = 1, idle: str = "1s") -> None:
        quoted = ", ".join(json.dumps(argument) for argument in arguments)
        self.manifests += RUNTIME.format(
            name=name, python=sys.executable, model=FAKE_MODEL, arguments=quoted, maximum=maximum, idle=idle
        )
        (self.directory / "models" / name).mkdir(parents=True)

    async def start(self) -> list[str]:
        """Start it and wait until every service serves; returns their URLs in order."""
        file = self.directory / "all.yaml"
        file.write_text(self.manifests)
        command = [
            *(sys.executable, "-m", "noctaya_cli", "run", str(file)),
            *("--volume", f"models={self.directory / 'models'}"),
            *("--port", "0", "--events", str(self.directory / "events.jsonl")),
            *("--gateway-env", "NOCTAYA_READY_GRACE=0s"),
        ]
        environment = os.environ | {"XDG_STATE_HOME": str(self.directory)}
        self.process = launch(command, environment, self.directory / "output")
        count = self.manifests.count("kind: LLMService")
        await eventually(lambda: len(self.events("service_started")) == count or self.ended, within=60)
        assert not self.ended, self.output
        return [event["url"] for event in sorted(self.events("service_started"), key=lambda e: e["service"])]

    @property
    def ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    @property
    def output(self) -> str:
        return (self.directory / "output").read_text()

    def events(self, kind: str) -> list[dict[str, Any]]:
        file = self.directory / "events.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def below(self) -> list[psutil.Process]:
        """Every process below it, now."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number: int) -> int:
        """Send a signal, wait for the end, check that no process is left; returns the exit code."""
        assert self.process is not None
        family = [] if self.ended else self.below()
        self.process.send_signal(number)
        code = self.process.wait(60)
        wait_for(lambda: not any(process.is_running() for process in family), within=30)
        return code


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    running = Run(tmp_path)
    (tmp_path / "models").mkdir()
    yield running
    if running.process is not None and not running.ended:
        running.end(signal.SIGKILL)


Ask = Callable[..., Coroutine[Any, Any, httpx.Response]]


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:

        async def post(url: str, **body: object) -> httpx.Response:
            return await client.post(f"{url}/chat/completions", json=body)

        yield post


async def test_looking_wakes_nothing_a_request_does_and_idle_ends_it(run: Run, ask: Ask) -> None:
    run.add("one")
    (url,) = await run.start()
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{url}/models")).json()["data"][0]["id"] == "one"
    assert run.events("process_started") == []
    reply = await ask(url, seconds=0)
    assert reply.status_code == 200
    assert reply.headers["x-noctaya-cold-start"] == "true"
    (started,) = run.events("process_started")
    assert reply.json()["pid"] == started["pid"]
    await eventually(lambda: len(run.events("replica_gone")) == 1, within=60)
    assert not psutil.pid_exists(started["pid"])
    kinds = [
        run.events(kind)[0]["monotonic"]
        for kind in ("requested", "activated", "process_started", "replica_ready")
    ]
    assert kinds == sorted(kinds)
    assert run.end(signal.SIGINT) == 0


async def test_services_run_side_by_side_each_with_its_own_model(run: Run, ask: Ask) -> None:
    run.add("one")
    run.add("two")
    urls = await run.start()
    first, second = await asyncio.gather(*(ask(url, seconds=0) for url in urls))
    assert first.json()["pid"] != second.json()["pid"]
    assert run.end(signal.SIGTERM) == 0


async def test_g9_a_model_that_crashes_is_told_to_held_requests_early(run: Run, ask: Ask) -> None:
    run.add("one", "--delay", "60", "--exit-after", "0.1", "--exit-code", "7")
    (url,) = await run.start()
    began = time.monotonic()
    reply = await ask(url, seconds=0)
    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == "activation_failed"
    assert "exit code 7" in reply.json()["error"]["message"]
    assert time.monotonic() - began < 45
    assert run.end(signal.SIGTERM) == 0


async def test_a_stream_in_flight_ends_well_when_it_is_interrupted(run: Run, ask: Ask) -> None:
    run.add("one", "--stream", "2")
    (url,) = await run.start()
    stream = asyncio.create_task(ask(url, stream=True))
    await eventually(lambda: len(run.events("replica_ready")) == 1, within=60)
    await asyncio.sleep(0.5)
    assert await asyncio.to_thread(run.end, signal.SIGINT) == 0
    assert (await stream).text.endswith("data: [DONE]\n\n")


async def stream_on(url: str, pid: int, client: httpx.AsyncClient) -> AsyncIterator[str]:
    """Lines of a stream of 25 s that the process `pid` answers; streams that others answer are given up."""
    body = {"stream": True, "seconds": 25}
    given_up: list[httpx.Response] = []
    while True:
        request = client.build_request("POST", f"{url}/chat/completions", json=body)
        reply = await client.send(request, stream=True)
        lines = reply.aiter_lines()
        if f'"pid": {pid}' in await anext(lines):
            break
        given_up.append(reply)
    for other in given_up:
        await other.aclose()
    return lines


async def test_g8_scale_in_cuts_no_stream(run: Run, ask: Ask) -> None:
    run.add("one", maximum=2)
    (url,) = await run.start()
    early = [asyncio.create_task(ask(url, stream=True, seconds=8)) for _ in range(2)]
    await eventually(lambda: len(run.events("replica_ready")) == 2, within=60)
    pids = {event["replica"]: event["pid"] for event in run.events("process_started")}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        lines = await stream_on(url, pids["one-2"], client)  # the younger one, which has to go first
        await asyncio.gather(*early)
        await eventually(lambda: len(run.events("replica_draining")) == 1, within=60)
        assert run.events("replica_draining")[0]["replica"] == "one-2"
        await asyncio.sleep(0.5)
        assert (await ask(url, seconds=0)).json()["pid"] == pids["one-1"]
        assert "data: [DONE]" in [line async for line in lines]
    assert run.end(signal.SIGTERM) == 0


async def test_an_interrupt_during_the_start_ends_it_too(run: Run) -> None:
    run.add("one")
    starting = asyncio.create_task(run.start())
    await eventually(lambda: len(run.events("gateway_started")) == 1, within=60)
    assert await asyncio.to_thread(run.end, signal.SIGINT) == 0
    starting.cancel()
    await asyncio.wait({starting})


async def test_a_second_signal_ends_at_once(run: Run, ask: Ask) -> None:
    run.add("one", "--stream", "50")
    (url,) = await run.start()
    stream = asyncio.create_task(ask(url, stream=True))
    await eventually(lambda: len(run.events("replica_ready")) == 1, within=60)
    assert run.process is not None
    run.process.send_signal(signal.SIGINT)
    await eventually(lambda: "stopping" in run.output)
    began = time.monotonic()
    assert await asyncio.to_thread(run.end, signal.SIGINT) == 0
    assert time.monotonic() - began < 20
    await asyncio.wait({stream})
    assert stream.exception() is not None or not stream.result().text.endswith("data: [DONE]\n\n")


async def test_a_killed_noctaya_leaves_no_process(run: Run, ask: Ask, tmp_path: Path) -> None:
    grandchild = tmp_path / "grandchild"
    run.add("one", "--ignore-term", "--grandchild", str(grandchild), idle="300s")
    (url,) = await run.start()
    await ask(url, seconds=0)
    pids = {process.pid for process in run.below()}
    assert int(grandchild.read_text()) in pids
    assert len(pids) == 5  # two guards, the gateway, the model, its child
    assert await asyncio.to_thread(run.end, signal.SIGKILL) == -signal.SIGKILL


async def test_a_killed_gateway_comes_back(run: Run, ask: Ask) -> None:
    run.add("one")
    (url,) = await run.start()
    (gateway,) = run.events("gateway_started")
    os.kill(gateway["pid"], signal.SIGKILL)
    await eventually(lambda: len(run.events("gateway_started")) == 2, within=60)

    async def answered() -> bool:
        try:
            return (await ask(url, seconds=0)).status_code == 200
        except httpx.TransportError:
            return False

    deadline = time.monotonic() + 60
    while not await answered():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    assert run.end(signal.SIGTERM) == 0


def test_a_port_in_use_is_told_before_anything_starts(tmp_path: Path) -> None:
    running = Run(tmp_path)
    (tmp_path / "models").mkdir()
    running.add("one")
    file = tmp_path / "all.yaml"
    file.write_text(running.manifests)
    port = PortPool().take()
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], stderr=-3
    ) as other:
        wait_for(lambda: _listens(port))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "noctaya_cli", "run", str(file)),
                *("--volume", f"models={tmp_path / 'models'}", "--port", str(port)),
            ],
            capture_output=True,
            text=True,
            env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
            check=False,
        )
        other.kill()
    assert done.returncode == 1
    assert done.stderr == f"error: can't listen on 127.0.0.1:{port}: Address already in use\n"
    assert not (tmp_path / "noctaya").exists()


def _listens(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
    except httpx.TransportError:
        return False
    return True
