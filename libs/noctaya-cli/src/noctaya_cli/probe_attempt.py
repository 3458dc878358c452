"""One attempt of a probe, over a real connection or process."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Protocol

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from noctaya_cli.ports import LOOPBACK
from noctaya_cli.probes import Exec, GrpcHealth, HttpGet, Probe, TcpSocket

SUCCESS = range(200, 400)


class ProbeFailed(Exception):
    """The attempt failed; the message says how."""


class Attempt(Protocol):
    """Makes one attempt; the seam where tests put a scripted one."""

    async def __call__(self, probe: Probe, *, port: int, env: Mapping[str, str]) -> None:
        """Return on success, raise ProbeFailed otherwise, within the probe's timeout."""


class ProbeClient:
    """Makes probe attempts as the kubelet does: a new connection each, certificates not verified."""

    def __init__(self) -> None:
        self._http = httpx.AsyncClient(
            verify=False,  # noqa: S501 - as the kubelet: a probe asks for health, not for identity
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def __call__(self, probe: Probe, *, port: int, env: Mapping[str, str]) -> None:
        """See `Attempt`."""
        try:
            async with asyncio.timeout(probe.timeout):
                match probe.action:
                    case HttpGet():
                        await self._http_get(probe.action, port=port)
                    case TcpSocket():
                        await connect(probe.action, port=port)
                    case GrpcHealth():
                        await call_health(probe.action, port=port)
                    case Exec():
                        await execute(probe.action, env=env)
        except TimeoutError:
            raise ProbeFailed(f"no answer within {probe.timeout:g} s") from None

    async def close(self) -> None:
        """Release the HTTP client."""
        await self._http.aclose()

    async def _http_get(self, action: HttpGet, *, port: int) -> None:
        host = f"[{action.host}]" if ":" in action.host else action.host or LOOPBACK
        path = action.path if action.path.startswith("/") else f"/{action.path}"
        url = f"{action.scheme.lower()}://{host}:{action.port or port}{path}"
        try:
            async with self._http.stream("GET", url, headers=list(action.headers), timeout=None) as response:
                status = response.status_code
        except httpx.HTTPError as error:
            raise ProbeFailed(f"GET {url}: {error or type(error).__name__}") from error
        if status not in SUCCESS:
            raise ProbeFailed(f"GET {url}: status {status}")


async def connect(action: TcpSocket, *, port: int) -> None:
    """A tcpSocket attempt; raises ProbeFailed."""
    try:
        _, writer = await asyncio.open_connection(action.host or LOOPBACK, action.port or port)
    except OSError as error:
        raise ProbeFailed(f"connect to port {action.port or port}: {error.strerror or error}") from error
    writer.close()
    with contextlib.suppress(OSError):  # it was accepted, which is all that was asked
        await writer.wait_closed()


async def call_health(action: GrpcHealth, *, port: int) -> None:
    """A grpc attempt; raises ProbeFailed."""
    target = f"{LOOPBACK}:{action.port or port}"
    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        try:
            reply = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=action.service)
            )
        except grpc.aio.AioRpcError as error:
            raise ProbeFailed(f"gRPC health of {target}: {error.code().name}") from error
    if reply.status != health_pb2.HealthCheckResponse.SERVING:
        raise ProbeFailed(f"gRPC health of {target}: status {reply.status}")


async def execute(action: Exec, *, env: Mapping[str, str]) -> None:
    """An exec attempt.

    Raises ProbeFailed. The process and its group are killed when the attempt is cancelled.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *action.command,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise ProbeFailed(f"{action.command[0]}: {error.strerror or error}") from error
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if code != 0:
        raise ProbeFailed(f"{action.command[0]}: exit code {code}")
