"""The process as a whole, over real sockets: start, endpoints, leader election, stop, bad configuration."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from cluster import raw_runtime
from fake_apiserver import FakeApiServer
from noctaya_api.process.lifecycle import Stop
from noctaya_operator.app import serve
from noctaya_operator.kinds import LLM_SERVICES
from noctaya_operator.kube.access import AccessError
from noctaya_operator.kube.leader import LeadershipLost
from noctaya_operator.kube.resources import DEPLOYMENTS, LEASES
from noctaya_operator.kube.server_clock import ServerClock
from noctaya_operator.settings import OperatorSettings
from samples import raw_service

LEASE = "6d7012cb.noctaya.io"


@pytest.fixture
def kubeconfig(tmp_path: Path, fake_apiserver: FakeApiServer) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text(
        f"""apiVersion: v1
kind: Config
clusters: [{{name: fake, cluster: {{server: "{fake_apiserver.url}"}}}}]
users: [{{name: fake, user: {{token: t}}}}]
contexts: [{{name: fake, context: {{cluster: fake, user: fake}}}}]
current-context: fake
"""
    )
    return str(file)


def settings(kubeconfig: str, **given: object) -> OperatorSettings:
    values = {"health_probe_bind_address": "0", "kubeconfig": kubeconfig, **given}
    return OperatorSettings(**values)  # type: ignore[arg-type]


@asynccontextmanager
async def running(
    given: OperatorSettings, on_started: Callable[[Sequence[int]], None] | None = None
) -> AsyncIterator[Stop]:
    stop = Stop()
    task = asyncio.create_task(serve(given, stop, on_started=on_started))
    try:
        yield stop
    finally:
        stop.trigger()
        await asyncio.wait_for(task, 30)


async def until(server: FakeApiServer, name: str) -> None:
    """Wait for a Deployment."""
    async with asyncio.timeout(60):
        while server.find(DEPLOYMENTS, "team", name) is None:
            await server.api.store.changed()


def holder(server: FakeApiServer) -> str:
    lease = server.find(LEASES, "noctaya-system", LEASE) or {"spec": {}}
    return str(lease["spec"].get("holderIdentity") or "")


async def held(server: FakeApiServer, *, by_other_than: str = "") -> str:
    """Wait until somebody holds the lease."""
    async with asyncio.timeout(60):
        while holder(server) in {"", by_other_than}:
            await server.api.store.changed()
    return holder(server)


async def test_it_reconciles_until_it_is_stopped(fake_apiserver: FakeApiServer, kubeconfig: str) -> None:
    fake_apiserver.put(raw_runtime())
    fake_apiserver.put(raw_service())
    async with running(settings(kubeconfig)):
        await until(fake_apiserver, "chat-gateway")
    fake_apiserver.requests.clear()
    fake_apiserver.remove(DEPLOYMENTS, "team", "chat-gateway")
    assert fake_apiserver.requests == []


async def test_health_and_metrics_are_served(fake_apiserver: FakeApiServer, kubeconfig: str) -> None:
    fake_apiserver.faults.fail(status=500, times=2, verb="list", resource=LLM_SERVICES)
    anywhere = "127.0.0.1:0"
    given = settings(kubeconfig, health_probe_bind_address=anywhere, metrics_bind_address=anywhere)
    started: asyncio.Future[Sequence[int]] = asyncio.get_running_loop().create_future()
    async with running(given, on_started=started.set_result), aiohttp.ClientSession() as http:
        health, metrics = await asyncio.wait_for(started, 60)

        async def get(port: int, path: str) -> tuple[int, str]:
            async with http.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()

        assert await get(health, "/healthz") == (200, "ok\n")
        readiness = await get(health, "/readyz")
        assert readiness[0] == 503
        assert "waiting for llmservices.serving.noctaya.io\n" in readiness[1]
        async with asyncio.timeout(60):
            while readiness[0] != 200:
                await asyncio.sleep(0.02)
                readiness = await get(health, "/readyz")
        status, text = await get(metrics, "/metrics")
    assert status == 200
    for name in (
        "workqueue_depth",
        "controller_runtime_reconcile_total",
        "rest_client_requests_total",
        "noctaya_operator_services",
        "process_resident_memory_bytes",
    ):
        assert name in text


async def test_of_two_one_works_and_the_other_takes_over_at_once(
    fake_apiserver: FakeApiServer, kubeconfig: str
) -> None:
    given = settings(kubeconfig, leader_elect=True)
    fake_apiserver.put(raw_runtime())
    fake_apiserver.put(raw_service())
    async with running(given) as first:
        leader = await held(fake_apiserver)
        await until(fake_apiserver, "chat-gateway")
        async with running(given):
            fake_apiserver.put(raw_service(name="second"))
            await until(fake_apiserver, "second-gateway")
            assert holder(fake_apiserver) == leader
            first.trigger()
            successor = await held(fake_apiserver, by_other_than=leader)
            fake_apiserver.put(raw_service(name="third"))
            await until(fake_apiserver, "third-gateway")
        assert successor != leader
    assert holder(fake_apiserver) == ""


async def test_with_a_wrong_clock_it_tells_the_api_servers_time(
    fake_apiserver: FakeApiServer, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = partial(ServerClock, own=lambda: datetime.now(UTC) + timedelta(hours=1))
    monkeypatch.setattr("noctaya_operator.app.ServerClock", wrong)

    def renewed() -> datetime:
        lease = fake_apiserver.find(LEASES, "noctaya-system", LEASE) or {"spec": {}}
        return datetime.fromisoformat(lease["spec"].get("renewTime", "1970-01-01T00:00:00Z"))

    async with running(settings(kubeconfig, leader_elect=True)), asyncio.timeout(60):
        while abs(renewed() - datetime.now(UTC)) > timedelta(minutes=5):
            await fake_apiserver.api.store.changed()


async def test_a_leader_that_lost_its_lease_ends(fake_apiserver: FakeApiServer, kubeconfig: str) -> None:
    given = settings(kubeconfig, leader_elect=True, retry_period=0.05, renew_deadline=0.5)
    task = asyncio.create_task(serve(given, Stop()))
    await held(fake_apiserver)
    lease = fake_apiserver.find(LEASES, "noctaya-system", LEASE)
    assert lease is not None
    lease["spec"]["holderIdentity"] = "somebody else"
    fake_apiserver.put(lease)
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(task, 60)


async def test_no_api_server_to_be_found_is_a_clear_error(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(AccessError, match="no such file"):
        await serve(settings(missing), Stop())


async def test_the_program_says_what_is_missing_and_ends(tmp_path: Path) -> None:
    process = await program("--kubeconfig", str(tmp_path / "missing"), "--health-probe-bind-address=0")
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert "can't go on: kubeconfig" in told.decode()


async def test_a_collector_s_address_with_a_password_ends_it_without_telling_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:hunter2secret@collector:4318")
    process = await program("--kubeconfig", str(tmp_path / "missing"))
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert "OTEL_EXPORTER_OTLP_ENDPOINT: must hold no user and no password" in told.decode()
    assert "hunter2secret" not in told.decode()


async def test_the_program_releases_its_lease_on_sigterm(
    fake_apiserver: FakeApiServer, kubeconfig: str
) -> None:
    process = await program("--leader-elect", "--health-probe-bind-address=0", f"--kubeconfig={kubeconfig}")
    await held(fake_apiserver)
    process.send_signal(signal.SIGTERM)
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, told.decode()
    assert holder(fake_apiserver) == ""


async def program(*arguments: str) -> asyncio.subprocess.Process:
    code = "from noctaya_operator.app import main; main()"
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *arguments, stderr=asyncio.subprocess.PIPE
    )


async def test_a_port_in_use_is_an_error(fake_apiserver: FakeApiServer, kubeconfig: str) -> None:
    taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    try:
        with pytest.raises(OSError, match="in use"):
            await serve(settings(kubeconfig, health_probe_bind_address=f"127.0.0.1:{port}"), Stop())
    finally:
        taken.close()
        await taken.wait_closed()
