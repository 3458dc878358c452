"""P10: the aggregate scaler under 64 gateways whose total toggles fifty times a second."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from noctaya_api.externalscaler.client import ExternalScalerClient

from ..calls import call
from ..children import free_port
from ..figures import percentile
from ..lab import Lab
from ..patience import until
from ..peers.peer import Peer
from ..reporters import BEAT_SECONDS, Reporter
from ..verdicts import Finding, at_most

GATEWAYS = 64
TRANSITIONS_A_SECOND = 50
READS_A_SECOND = 10
TOKEN = "bench-token-0123456789abcdef0123456789abcdef"
CPU_LIMIT = 5.0
READ_LIMIT_MS = 10.0
PUSH_LIMIT_MS = 20.0


@dataclass(slots=True)
class Pushes:
    """Matches what StreamIsActive sends with the transitions that caused it."""

    sent: dict[bool, float] = field(default_factory=dict)
    took_ms: list[float] = field(default_factory=list)
    missed: int = 0

    def expect(self, active: bool) -> None:
        """A transition to `active` is on its way now."""
        if active in self.sent:
            self.missed += 1
        self.sent[active] = time.monotonic()

    def seen(self, active: bool) -> None:
        """The stream said `active`; the repeats of `true` match nothing and are left out."""
        begun = self.sent.pop(active, None)
        if begun is not None:
            self.took_ms.append((time.monotonic() - begun) * 1000)


async def measure(lab: Lab) -> Finding:
    """All members report 0 but one, which toggles; every toggle of the total must be pushed."""
    http_port, peer, target = await start_scaler(lab)
    seconds = lab.pick(quick=8, full=20)
    pushes, reads = Pushes(), list[float]()
    async with contextlib.AsyncExitStack() as stack:
        members = await stack.enter_async_context(reporting(http_port))
        await _ready(http_port)
        metadata = {"metricName": "pending", "targetValue": "1"}
        client = await stack.enter_async_context(ExternalScalerClient(target, metadata=metadata))
        listener = asyncio.create_task(_listen(client, pushes))
        reader = asyncio.create_task(_read(client, reads))
        stack.push_async_callback(_cancel, listener, reader)
        await asyncio.sleep(1)
        used = peer.cpu_seconds()
        await toggle(members[0], pushes, seconds=seconds)
        used = peer.cpu_seconds() - used
        await asyncio.sleep(0.2)
        for task in (listener, reader):
            if task.done():
                task.result()
    cpu = used / seconds * 100
    push, read = percentile(pushes.took_ms, 99), percentile(reads, 99)
    finding = Finding(
        measure="P10",
        title=f"Aggregate scaler: {GATEWAYS} gateways, {TRANSITIONS_A_SECOND} transitions/s",
        columns=(
            "CPU % of a core",
            "RSS MB",
            "GetMetrics p50 ms",
            "p99 ms",
            "push p50 ms",
            "p99 ms",
            "missed",
        ),
    )
    finding.rows.append(
        (
            f"{cpu:.1f}",
            f"{peer.rss_bytes() / 2**20:.0f}",
            f"{percentile(reads, 50):.1f}",
            f"{read:.1f}",
            f"{percentile(pushes.took_ms, 50):.1f}",
            f"{push:.1f}",
            f"{pushes.missed} of {seconds * TRANSITIONS_A_SECOND}",
        )
    )
    finding.verdicts += [
        at_most(f"CPU < {CPU_LIMIT:g} % of a core", cpu, CPU_LIMIT, f"{cpu:.1f} %"),
        at_most(f"GetMetrics p99 < {READ_LIMIT_MS:g} ms", read, READ_LIMIT_MS, f"{read:.1f} ms"),
        at_most(f"transition to push p99 < {PUSH_LIMIT_MS:g} ms", push, PUSH_LIMIT_MS, f"{push:.1f} ms"),
    ]
    return finding


async def start_scaler(lab: Lab) -> tuple[int, Peer, str]:
    """The aggregate scaler; its report port, its process, its gRPC address."""
    token_file = lab.directory / "demand-token"
    token_file.write_text(f"{TOKEN}\n")
    http_port, grpc_port = free_port(), free_port()
    env = {
        "NOCTAYA_AGGREGATOR_LISTEN_ADDR": f"127.0.0.1:{http_port}",
        "NOCTAYA_SCALER_LISTEN_ADDR": f"127.0.0.1:{grpc_port}",
        "NOCTAYA_DEMAND_AUTH_TOKEN_FILE": str(token_file),
        "NOCTAYA_EXPECTED_GATEWAY_MEMBERS": str(GATEWAYS),
    }
    command = str(Path(sys.executable).with_name("noctaya-aggregate-scaler"))
    child = await lab.start("aggregate-scaler", [command], env=env)
    await child.listening(http_port)
    await child.listening(grpc_port)
    return (
        http_port,
        Peer(name="aggregate scaler", port=http_port, pids=(child.pid,)),
        f"127.0.0.1:{grpc_port}",
    )


@contextlib.asynccontextmanager
async def reporting(port: int) -> AsyncIterator[list[Reporter]]:
    """All members, each beating with demand 0; the first one is the caller's to move."""
    members = [Reporter(f"gateway-{number}", port=port, token=TOKEN) for number in range(GATEWAYS)]
    for member in members:
        await member.connect()
    await members[0].report(0)
    beats = [
        asyncio.create_task(member.beat(0, after=BEAT_SECONDS * number / GATEWAYS))
        for number, member in enumerate(members[1:])
    ]
    try:
        yield members
    finally:
        await _cancel(*beats)
        for member in members:
            member.close()


async def toggle(member: Reporter, pushes: Pushes, *, seconds: int) -> None:
    """Raise and drop the total in turn, `TRANSITIONS_A_SECOND` times a second."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    active = False
    for _ in range(seconds * TRANSITIONS_A_SECOND):
        active = not active
        pushes.expect(active)
        await member.report(int(active))
        due += 1 / TRANSITIONS_A_SECOND
        await asyncio.sleep(max(0.0, due - loop.time()))


async def _listen(client: ExternalScalerClient, pushes: Pushes) -> None:
    async for active in client.stream_is_active():
        pushes.seen(active)


async def _read(client: ExternalScalerClient, reads: list[float]) -> None:
    while True:
        begun = time.monotonic()
        await client.metric()
        reads.append((time.monotonic() - begun) * 1000)
        await asyncio.sleep(1 / READS_A_SECOND)


async def _ready(port: int) -> None:
    """Wait until the scaler has heard of every member."""
    line = f"noctaya_scaler_gateway_members {GATEWAYS:.1f}\n".encode()

    async def all_known() -> bool:
        return line in (await call(port, "/metrics"))[1]

    await until(all_known, within=20, every=0.05)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """End the tasks; a task that had failed by itself is reported, not forgotten."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
