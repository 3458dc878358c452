"""The installed `noctaya-gateway` as a process, seen through its sockets, log lines and /proc."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO, Any

import psutil
from prometheus_client.parser import text_string_to_metric_families

from .client import Client, ask, open_client
from .wire import SOON

START_WITHIN = 60.0
"""Seconds a start may take on a machine that is busy with other tests."""

EXECUTABLE = Path(sys.executable).with_name("noctaya-gateway")

DEFAULTS = {
    "NOCTAYA_LISTEN_ADDR": "127.0.0.1:0",
    "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:0",
    # Fast enough that no test waits for a probe; production values are slower.
    "NOCTAYA_PROBE_INTERVAL": "40ms",
    "NOCTAYA_PROBE_FAST_INTERVAL": "20ms",
    "NOCTAYA_PROBE_FALL": "1",
    "NOCTAYA_READY_GRACE": "1ms",
    "NOCTAYA_LAME_DUCK": "100ms",
    "NOCTAYA_RELEASE_RATE": "0",
}


class GatewayExitError(Exception):
    """The process ended before it was listening."""

    def __init__(self, code: int | None, lines: list[str]) -> None:
        super().__init__(f"exit {code}: " + "\n".join(lines))
        self.code = code
        self.lines = lines


class GatewayProcess:
    """One gateway. `await start()` returns once it listens."""

    def __init__(self, env: Mapping[str, str], *, stdout: IO[bytes] | int = subprocess.DEVNULL) -> None:
        self.env = {**DEFAULTS, **env}
        self._stdout = stdout
        self.port = 0
        self.scaler_port = 0
        self.lines: list[str] = []
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    async def start(self) -> None:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("NOCTAYA_")}
        self._process = await asyncio.create_subprocess_exec(
            str(EXECUTABLE),
            env={**inherited, **self.env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 22,
        )
        self._reader = asyncio.create_task(self._read_lines())
        async with asyncio.timeout(START_WITHIN):
            while self.port == 0:
                if self._reader.done():
                    raise GatewayExitError(await self.process.wait(), self.lines)
                self._news.clear()
                await self._news.wait()

    @property
    def process(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("not started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def records(self) -> list[dict[str, Any]]:
        """Log lines that are JSON objects."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    @property
    def crashes(self) -> list[str]:
        """Log lines that carry a traceback or did not come from the JSON logger."""
        return [line for line in self.lines if "Traceback" in line or not line.startswith("{")]

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def exit_code(self, within: float = SOON) -> int:
        async with asyncio.timeout(within):
            code = await self.process.wait()
            if self._reader is not None:
                await self._reader
        return code

    async def stop(self) -> None:
        """End it without ceremony."""
        if self.running:
            self.process.kill()
        if self._process is not None:
            await self.exit_code()

    async def client(self, **options: Any) -> Client:
        return await open_client(self.port, **options)

    async def ask(
        self, method: bytes = b"POST", target: bytes = b"/v1/chat/completions", **options: Any
    ) -> Any:
        return await ask(self.port, method, target, **options)

    async def get_json(self, target: str) -> dict[str, Any]:
        reply = await ask(self.port, b"GET", target.encode(), body=None)
        value: dict[str, Any] = json.loads(reply.data)
        return value

    async def demand(self) -> int:
        """Effective demand, as KEDA would see it."""
        return int((await self.get_json("/noctaya/queue"))["pending"])

    async def backend_ready(self) -> bool:
        return bool((await self.get_json("/readyz"))["backend_ready"])

    async def metrics(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        reply = await ask(self.port, b"GET", b"/metrics", body=None)
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(reply.data.decode())
            for sample in family.samples
        }

    async def metric(self, name: str, **labels: str) -> float:
        """A sample's value; 0 for a labelled counter that was not used yet."""
        return (await self.metrics()).get((name, tuple(sorted(labels.items()))), 0.0)

    async def admitted(self) -> int:
        """Slots taken."""
        return int(await self.metric("noctaya_gateway_pending"))

    def rss(self) -> int:
        """Resident bytes."""
        return int(psutil.Process(self.pid).memory_info().rss)

    def open_sockets(self) -> int:
        """Established TCP connections of the process."""
        connections = psutil.Process(self.pid).net_connections(kind="tcp")
        return sum(1 for c in connections if c.status == psutil.CONN_ESTABLISHED)

    async def _read_lines(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        while line := await stream.readline():
            text = line.decode(errors="replace").rstrip()
            self.lines.append(text)
            self._notice(text)
        self._news.set()

    def _notice(self, text: str) -> None:
        if '"listening"' not in text:
            return
        record = json.loads(text)
        if record.get("listener") == "scaler":
            self.scaler_port = int(record["port"])
        elif record.get("listener") == "http":
            self.port = int(record["port"])
            self._news.set()


async def eventually(
    condition: Callable[[], Awaitable[bool]], *, within: float = SOON, every: float = 0.02
) -> None:
    """Wait until a condition that has to be asked for holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110 - the state is another process's
            await asyncio.sleep(every)
