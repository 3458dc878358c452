from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from noctaya_api.externalscaler.client import ExternalScalerClient
from noctaya_api.process.lifecycle import Stop
from noctaya_gateway import lifecycle
from noctaya_gateway.settings import GatewaySettings

from .servers import answering, hang_up, status, until, unused_address

CHAT = {"model": "m", "messages": []}


class Running:
    """A whole gateway in this loop."""

    def __init__(self, stop: Stop, task: asyncio.Task[int], ports: dict[str, int]) -> None:
        self.stop = stop
        self.task = task
        self.ports = ports
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{ports['http']}", timeout=30)

    async def shows(self, **expected: object) -> None:
        """Wait until `/readyz` shows these values."""
        async with asyncio.timeout(10):
            while True:
                found = (await self.client.get("/readyz")).json()
                if all(found[name] == value for name, value in expected.items()):
                    return
                await asyncio.sleep(0.01)

    async def ended(self) -> int:
        """Trigger the stop and wait for the exit code."""
        self.stop.trigger()
        return await asyncio.wait_for(self.task, 20)


class Ports(logging.Handler):
    """Reads the ports off the log, as an operator of the process would."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == "listening":
            details = vars(record)
            self.found[details["listener"]] = details["port"]


@contextlib.asynccontextmanager
async def gateway(**settings: object) -> AsyncIterator[Running]:
    given: dict[str, object] = {
        "listen_addr": "127.0.0.1:0",
        "scaler_listen_addr": "127.0.0.1:0",
        "lame_duck": 0.0,
        "probe_interval": 0.05,
        **settings,
    }
    loaded = GatewaySettings.model_validate(given)
    ports = Ports()
    lifecycle.log.addHandler(ports)
    level = lifecycle.log.level
    lifecycle.log.setLevel(logging.INFO)
    stop = Stop()
    task = asyncio.create_task(lifecycle.serve(loaded, stop=stop))
    try:
        await until(lambda: "http" in ports.found or task.done())
        running = Running(stop, task, ports.found)
        yield running
        await running.client.aclose()
        assert await running.ended() == 0
    finally:
        lifecycle.log.removeHandler(ports)
        lifecycle.log.setLevel(level)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def backend_url() -> str:
    return f"http://{unused_address()}"


@pytest.mark.parametrize("streaming", [False, True])
async def test_g15_of_contracts_an_idle_gateway_stops_within_two_seconds(streaming: bool) -> None:
    async with gateway(backend_url=backend_url()) as running:
        loop = asyncio.get_running_loop()
        if not streaming:
            began = loop.time()
            assert await running.ended() == 0
            assert loop.time() - began < 2
            return
        target = f"127.0.0.1:{running.ports['scaler']}"
        async with ExternalScalerClient(target, metadata={"targetValue": "10"}) as keda:
            pushes = keda.stream_is_active()
            assert await asyncio.wait_for(anext(pushes), 10) is False
            began = loop.time()
            stopping = asyncio.create_task(running.ended())
            with pytest.raises(StopAsyncIteration):
                await asyncio.wait_for(anext(pushes), 10)
            assert await stopping == 0
            assert loop.time() - began < 2


async def test_g8_readyz_fails_and_requests_are_still_taken_in_the_lame_duck_period() -> None:
    async with (
        answering(lambda path: status(200, "connection: close", body=b"ok")) as backend,
        gateway(backend_url=f"http://{backend.address}", lame_duck=1.5) as running,
    ):
        await running.shows(backend_ready=True)
        running.stop.trigger()
        await running.shows(draining=True)
        async with httpx.AsyncClient(base_url=running.client.base_url, timeout=10) as fresh:
            answer = await fresh.get("/readyz")
            assert (answer.status_code, answer.json()["ready"]) == (503, False)
            assert (await fresh.post("/v1/chat/completions", json=CHAT)).text == "ok"


async def test_g8_a_request_in_flight_ends_whole_within_the_drain_budget() -> None:
    go_on = asyncio.Event()
    reached = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b" /health " not in head:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nfirst")
            reached.set()
            await go_on.wait()
            writer.write(b"-last")
        else:
            writer.write(status(200, "connection: close"))
        await hang_up(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with gateway(backend_url=f"http://127.0.0.1:{port}", drain_timeout=10.0) as running:
        await running.shows(backend_ready=True)
        request = asyncio.create_task(running.client.post("/v1/chat/completions", json=CHAT))
        await reached.wait()
        running.stop.trigger()
        async with httpx.AsyncClient(base_url=running.client.base_url) as late:
            await _until_refused(late)
        go_on.set()
        answer = await asyncio.wait_for(request, 10)
        assert answer.text == "first-last"
        assert await running.ended() == 0
    server.close()
    await server.wait_closed()


async def _until_refused(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                await client.get("/healthz")
            except httpx.ConnectError:
                return
            except httpx.RemoteProtocolError:
                continue  # an idle connection, closed by the drain
            await asyncio.sleep(0.01)


async def test_g8_a_held_request_is_told_before_the_budget_ends() -> None:
    async with gateway(backend_url=backend_url(), drain_timeout=1.0) as running:
        request = asyncio.create_task(running.client.post("/v1/chat/completions", json=CHAT))
        await running.shows(held=1)
        running.stop.trigger()
        answer = await asyncio.wait_for(request, 10)
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "draining"


async def test_g8_the_report_is_withdrawn_after_the_drain(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    async with (
        answering(lambda path: status(204, "connection: close")) as aggregator,
        gateway(
            backend_url=backend_url(),
            demand_aggregator_url=f"http://{aggregator.address}/v1/demand",
            demand_auth_token_file=token,
            drain_timeout=1.0,
        ) as running,
    ):
        assert set(running.ports) == {"http"}, "no gRPC server in reporter mode"
        request = asyncio.create_task(running.client.post("/v1/chat/completions", json=CHAT))
        await until(lambda: len(aggregator.paths) >= 2)
        running.stop.trigger()
        assert (await request).status_code == 503
        reports = len(aggregator.paths)
        assert await running.ended() == 0
        assert len(aggregator.paths) > reports


async def test_an_interrupt_ends_the_waiting() -> None:
    import os
    import signal

    async with gateway(backend_url=backend_url(), lame_duck=30.0, drain_timeout=30.0) as running:
        running.stop.trigger()
        await running.shows(draining=True)
        os.kill(os.getpid(), signal.SIGINT)
        assert await asyncio.wait_for(running.task, 10) == 0


async def test_an_address_in_use_ends_the_start_with_code_1(caplog: pytest.LogCaptureFixture) -> None:
    async with answering(lambda path: status(200)) as other:
        settings = GatewaySettings(
            backend_url=backend_url(), listen_addr=str(other.address), scaler_listen_addr="127.0.0.1:0"
        )
        assert await asyncio.wait_for(lifecycle.serve(settings, stop=Stop()), 20) == 1
        assert "can't start" in caplog.text


async def test_unusable_tls_files_end_the_start_with_code_1(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("crt", "key", "ca"):
        (tmp_path / name).write_text("not PEM")
    settings = GatewaySettings(
        backend_url=backend_url(),
        listen_addr="127.0.0.1:0",
        scaler_listen_addr="127.0.0.1:0",
        scaler_tls_cert_file=tmp_path / "crt",
        scaler_tls_key_file=tmp_path / "key",
        scaler_tls_client_ca_file=tmp_path / "ca",
    )
    assert await asyncio.wait_for(lifecycle.serve(settings, stop=Stop()), 20) == 1
    assert "scaler TLS" in caplog.text
