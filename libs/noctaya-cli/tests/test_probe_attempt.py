"""One attempt of each kind of probe, on real sockets and processes."""

import asyncio
import sys
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc_health.v1 import _async as health
from grpc_health.v1 import health_pb2, health_pb2_grpc
from noctaya_cli.ports import LOOPBACK, PortPool
from noctaya_cli.probe_attempt import ProbeClient, ProbeFailed
from noctaya_cli.probes import Exec, GrpcHealth, HttpGet, Probe, TcpSocket

from .conftest import eventually, is_alive


@pytest.fixture
async def client() -> AsyncIterator[ProbeClient]:
    probing = ProbeClient()
    yield probing
    await probing.close()


@pytest.fixture
async def server() -> AsyncIterator[int]:
    """An HTTP server whose status is the path; `/slow` never answers, `/head` gives the header x back."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        if path == "/slow":
            await reader.read()
        elif path == "/head":
            status = "200" if "x: y" in head else "400"
            writer.write(f"HTTP/1.1 {status} OK\r\ncontent-length: 0\r\n\r\n".encode())
        else:
            writer.write(f"HTTP/1.1 {path[1:]} OK\r\nlocation: /500\r\ncontent-length: 0\r\n\r\n".encode())
        writer.close()

    listening = await asyncio.start_server(serve, LOOPBACK, 0)
    yield listening.sockets[0].getsockname()[1]
    listening.close()


@pytest.mark.parametrize("path", ["/200", "/204", "/302", "399"])
async def test_statuses_from_200_to_399_are_success(client: ProbeClient, server: int, path: str) -> None:
    await client(Probe(HttpGet(path)), port=server, env={})


@pytest.mark.parametrize("path", ["/400", "/404", "/500", "/503"])
async def test_other_statuses_are_failures_that_name_it(client: ProbeClient, server: int, path: str) -> None:
    with pytest.raises(ProbeFailed, match=f"status {path[1:]}"):
        await client(Probe(HttpGet(path)), port=server, env={})


async def test_headers_are_sent(client: ProbeClient, server: int) -> None:
    await client(Probe(HttpGet("/head", headers=(("x", "y"),))), port=server, env={})


async def test_an_answer_that_does_not_come_in_time_is_a_failure(client: ProbeClient, server: int) -> None:
    with pytest.raises(ProbeFailed, match=r"no answer within 0\.1 s"):
        await client(Probe(HttpGet("/slow"), timeout=0.1), port=server, env={})


@pytest.mark.parametrize("action", [HttpGet("/200"), TcpSocket(), GrpcHealth()], ids=["http", "tcp", "grpc"])
async def test_a_port_nobody_listens_on_is_a_failure(
    client: ProbeClient, action: HttpGet | TcpSocket | GrpcHealth
) -> None:
    with pytest.raises(ProbeFailed):
        await client(Probe(action, timeout=5), port=PortPool().take(), env={})


async def test_an_accepted_connection_is_enough_for_tcp(client: ProbeClient, server: int) -> None:
    await client(Probe(TcpSocket()), port=server, env={})
    await client(Probe(TcpSocket(port=server)), port=1, env={})


async def test_grpc_health_must_say_serving(client: ProbeClient) -> None:
    server = grpc.aio.server()
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    await server.start()
    probe = Probe(GrpcHealth(), timeout=10)
    await client(probe, port=port, env={})
    await servicer.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    with pytest.raises(ProbeFailed, match="status 2"):
        await client(probe, port=port, env={})
    await server.stop(None)


async def test_exec_succeeds_with_exit_code_0_in_the_containers_environment(client: ProbeClient) -> None:
    check = "import os, sys; sys.exit(int(os.environ['CODE']))"
    probe = Probe(Exec((sys.executable, "-I", "-S", "-c", check)), timeout=10)
    await client(probe, port=1, env={"CODE": "0"})
    with pytest.raises(ProbeFailed, match="exit code 4"):
        await client(probe, port=1, env={"CODE": "4"})


async def test_a_program_that_is_not_there_is_a_failure(client: ProbeClient) -> None:
    with pytest.raises(ProbeFailed, match="no-such-program: No such file"):
        await client(Probe(Exec(("no-such-program",))), port=1, env={})


async def test_an_exec_that_hangs_is_killed(
    client: ProbeClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("exec") / "pid"
    code = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    probe = Probe(Exec((sys.executable, "-I", "-S", "-c", code)), timeout=3)
    with pytest.raises(ProbeFailed, match="no answer within 3 s"):
        await client(probe, port=1, env={})
    await eventually(lambda: not is_alive(int(file.read_text())))
