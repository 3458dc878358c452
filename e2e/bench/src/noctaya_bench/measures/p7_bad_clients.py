"""P7: slow readers, large bodies, and clients that leave in every phase of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from ..backend import Backend
from ..calls import call
from ..lab import Lab
from ..patience import until
from ..payloads import CHAT_PATH, chat_body, request_bytes
from ..peers.gateway import start_gateway
from ..peers.peer import Peer
from ..procfs import peak_rss_bytes, reset_peak
from ..raw_client import RawClient
from ..verdicts import Finding, at_most

MEGABYTE = 2**20
REPLY_BYTES = 100 * MEGABYTE
UPLOAD_BYTES = 200 * MEGABYTE
BLOCK = b"u" * 65536
SLOW_READERS = 4
GROWTH_LIMIT_MB = 2.0
GONE_LIMIT_MS = 100.0
SMALL_BODY = chat_body(stream=True)


async def measure(lab: Lab) -> Finding:
    """Peak memory (VmHWM, reset before each part) and the time until the backend sees a close."""
    backend = await lab.start_backend()
    gateway = await start_gateway(lab, backend.port)
    await fetch(gateway.port, MEGABYTE)
    finding = Finding(measure="P7", title="Slow, large and leaving clients", columns=("case", "figure"))
    growth = {
        f"{SLOW_READERS} slow readers of a 100 MB reply, MB each": await slow_readers(lab, gateway),
        "100 MB reply read at full speed, MB": await grown(gateway, fetch(gateway.port, REPLY_BYTES)),
        "200 MB upload, MB": await grown(gateway, upload(gateway, backend)),
    }
    finding.rows += [(f"RSS growth, {case}", f"{size:.1f}") for case, size in growth.items()]
    worst = max(growth.values())
    promise = f"RSS growth <= {GROWTH_LIMIT_MB:g} MB a stream"
    finding.verdicts.append(at_most(promise, worst, GROWTH_LIMIT_MB, f"{worst:.1f} MB at most"))
    times = await leaving_times(lab, gateway, backend)
    finding.rows += [(f"backend sees the close, {phase}, ms", f"{took:.1f}") for phase, took in times.items()]
    slowest = max(times.values())
    promise = f"backend sees the close within {GONE_LIMIT_MS:g} ms"
    finding.verdicts.append(at_most(promise, slowest, GONE_LIMIT_MS, f"{slowest:.1f} ms at most"))
    freed = await held_client_leaves(lab)
    finding.rows.append(("slot free after a held client left, ms", f"{freed:.1f}"))
    promise = f"a held client's slot is free within {GONE_LIMIT_MS:g} ms"
    finding.verdicts.append(at_most(promise, freed, GONE_LIMIT_MS, f"{freed:.1f} ms"))
    return finding


async def grown(gateway: Peer, doing: Awaitable[None]) -> float:
    """Megabytes by which the gateway's peak memory exceeds its memory before."""
    before = start_peak(gateway)
    await doing
    return (peak_rss_bytes(gateway.pids[0]) - before) / MEGABYTE


def start_peak(gateway: Peer) -> int:
    """Resident bytes now; the peak counts from here."""
    reset_peak(gateway.pids[0])
    return gateway.rss_bytes()


async def fetch(port: int, size: int) -> None:
    """Read a reply of `size` bytes to its end."""
    client = await RawClient.connect(port)
    try:
        await client.send(request_bytes(f"{CHAT_PATH}?bytes={size}", SMALL_BODY))
        await client.has_received(size, within=60)
    finally:
        client.leave()


async def slow_readers(lab: Lab, gateway: Peer) -> float:
    """Megabytes a stream while several clients read a large reply at about a megabyte a second."""
    clients = [await RawClient.connect(gateway.port, rest=0.1) for _ in range(SLOW_READERS)]
    before = start_peak(gateway)
    try:
        for client in clients:
            await client.send(request_bytes(f"{CHAT_PATH}?bytes={REPLY_BYTES}", SMALL_BODY))
        await asyncio.sleep(lab.pick(quick=2.0, full=5.0))
        if any(client.received == 0 or client.received > REPLY_BYTES for client in clients):
            raise RuntimeError("a slow reader got nothing, or everything")
        return (peak_rss_bytes(gateway.pids[0]) - before) / MEGABYTE / SLOW_READERS
    finally:
        for client in clients:
            client.leave()


async def upload(gateway: Peer, backend: Backend) -> None:
    """Send a large body and make sure that the backend got every byte of it."""
    client = await RawClient.connect(gateway.port)
    try:
        await client.send(upload_head("upload"))
        for _ in range(UPLOAD_BYTES // len(BLOCK)):
            await client.send(BLOCK)
        await client.has_received(1, within=60)
        received = await _visit(backend, "upload", "received")
    finally:
        client.leave()
    if received != UPLOAD_BYTES:
        raise RuntimeError(
            f"the backend got {received} of {UPLOAD_BYTES} bytes, the client {client.head[:200]!r}"
        )


def upload_head(tag: str) -> bytes:
    """The head of a large upload that the stub records under `tag`."""
    head = request_bytes(f"{CHAT_PATH}?tag={tag}", b"")
    return head.replace(b"Content-Length: 0", b"Content-Length: %d" % UPLOAD_BYTES)


async def leaving_times(lab: Lab, gateway: Peer, backend: Backend) -> dict[str, float]:
    """Milliseconds from leaving to the close at the backend; for each phase the worst of some tries."""
    queries = {
        "before the first byte": "stall=1",
        "between two chunks": "chunks=10000&every=50",
        "with a large reply unread": f"bytes={REPLY_BYTES}",
    }
    worst = dict.fromkeys((*queries, "in the middle of an upload"), 0.0)
    for attempt in range(lab.pick(quick=3, full=10)):
        for number, (phase, query) in enumerate(queries.items()):
            tag = f"leave-{number}-{attempt}"
            client = await RawClient.connect(gateway.port, rest=30.0 if "bytes" in query else 0.0)
            await client.send(request_bytes(f"{CHAT_PATH}?{query}&tag={tag}", SMALL_BODY))
            worst[phase] = max(worst[phase], await _leave(client, backend, tag))
        tag = f"leave-upload-{attempt}"
        client = await RawClient.connect(gateway.port)
        await client.send(upload_head(tag))
        for _ in range(64):
            await client.send(BLOCK)
        worst["in the middle of an upload"] = max(
            worst["in the middle of an upload"], await _leave(client, backend, tag)
        )
    return worst


async def held_client_leaves(lab: Lab) -> float:
    """Milliseconds until the slot of a held client that left is free; the worst of some tries."""
    backend = await lab.start_backend(ready=False)
    gateway = await start_gateway(lab, backend.port)
    worst = 0.0
    for _ in range(lab.pick(quick=3, full=10)):
        client = await RawClient.connect(gateway.port)
        await client.send(request_bytes(CHAT_PATH, SMALL_BODY))
        await _pending(gateway.port, 1)
        left = client.leave()
        await _pending(gateway.port, 0)
        worst = max(worst, (time.monotonic() - left) * 1000)
    return worst


async def _leave(client: RawClient, backend: Backend, tag: str) -> float:
    """Leave a little after the backend got the request; milliseconds until it sees its connection close."""

    async def arrived() -> bool:
        return tag in (await backend.state())["visits"]

    async def closed() -> bool:
        return await _visit(backend, tag, "closed") is not None

    await until(arrived, within=10)
    await asyncio.sleep(0.1)
    left = client.leave()
    await until(closed, within=10)
    return max(0.0, ((await _visit(backend, tag, "closed") or 0.0) - left) * 1000)


async def _visit(backend: Backend, tag: str, what: str) -> float | None:
    value: float | None = (await backend.state())["visits"][tag][what]
    return value


async def _pending(port: int, count: int) -> None:
    """Wait until the gauge of admitted requests stands at `count`."""
    line = f"noctaya_gateway_pending {count:.1f}\n".encode()

    async def stands() -> bool:
        return line in (await call(port, "/metrics"))[1]

    await until(stands, within=10, every=0.002)
