"""P4: five thousand cold streams held with heartbeats, then released at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ..calls import call_json
from ..lab import Lab
from ..patience import until
from ..payloads import CHAT_PATH, REQUEST_BYTES, chat_body, request_bytes
from ..peers.gateway import Engine, start_gateway
from ..streams import StreamLoad
from ..verdicts import Finding, at_most

STREAMS = 5000
HEARTBEAT_SECONDS = 10
KB_LIMIT = 12.0
CPU_LIMIT = 3.0
RELEASE_LIMIT = 1.0
SETTINGS = {
    "NOCTAYA_RELEASE_RATE": "0",
    "NOCTAYA_MAX_QUEUE": "6000",
    "NOCTAYA_HEARTBEAT_INTERVAL": f"{HEARTBEAT_SECONDS}s",
}


@dataclass(frozen=True, slots=True)
class Held:
    """Figures of one gateway that held the streams."""

    kilobytes: float
    """Resident memory a held connection, its body not counted."""
    cpu_percent: float
    """Of one core, while nothing happens but heartbeats and probes."""
    heartbeats: float
    """Heartbeats a stream in the time it was held."""
    lost: int
    release_seconds: float
    """From readiness until the backend has the last request."""
    answered_seconds: float
    """From readiness until the last client has its first event."""


async def measure(lab: Lab) -> Finding:
    """Memory after all are held, CPU over whole heartbeat periods, times from the moment of readiness."""
    finding = Finding(
        measure="P4",
        title=f"{STREAMS:,} held cold streams, heartbeat {HEARTBEAT_SECONDS} s, release not paced",
        columns=("engine", "KB a stream", "idle CPU %", "lost", "released s", "all answered s"),
    )
    held: dict[Engine, Held] = {}
    for engine in (Engine.PROTOCOL,) if lab.quick else (Engine.PROTOCOL, Engine.ASGI):
        one = held[engine] = await hold(lab, engine)
        finding.rows.append(
            (
                engine.value,
                f"{one.kilobytes:.1f}",
                f"{one.cpu_percent:.1f}",
                str(one.lost),
                f"{one.release_seconds:.2f}",
                f"{one.answered_seconds:.2f}",
            )
        )
    ours = held[Engine.PROTOCOL]
    finding.verdicts += [
        at_most(f"<= {KB_LIMIT:g} KB a held stream", ours.kilobytes, KB_LIMIT, f"{ours.kilobytes:.1f} KB"),
        at_most(
            f"idle CPU < {CPU_LIMIT:g} % of a core", ours.cpu_percent, CPU_LIMIT, f"{ours.cpu_percent:.1f} %"
        ),
        at_most("none lost", ours.lost, 0, f"{ours.lost} lost"),
        at_most("released within 1 s", ours.release_seconds, RELEASE_LIMIT, f"{ours.release_seconds:.2f} s"),
    ]
    return finding


async def hold(lab: Lab, engine: Engine) -> Held:
    """Hold the streams on a fresh gateway and release them."""
    backend = await lab.start_backend(ready=False)
    gateway = await start_gateway(lab, backend.port, engine=engine, env=SETTINGS)
    empty = gateway.rss_bytes()
    load = StreamLoad(gateway.port, request_bytes(f"{CHAT_PATH}?chunks=1&every=0", chat_body(stream=True)))
    try:
        await load.open(STREAMS)
        await _queued(gateway.port, STREAMS)
        await asyncio.sleep(1)
        window = lab.pick(quick=HEARTBEAT_SECONDS, full=2 * HEARTBEAT_SECONDS)
        used = gateway.cpu_seconds()
        await asyncio.sleep(window)
        used = gateway.cpu_seconds() - used
        grown = gateway.rss_bytes() - empty
        await backend.reset()
        ready_at = await backend.set_ready(True)
        outcome = await load.all_ended(within=60)
        seen = await backend.state()
    finally:
        load.close()
    firsts = [stream.first_event for stream in load.streams if stream.first_event is not None]
    return Held(
        kilobytes=(grown / STREAMS - REQUEST_BYTES) / 1024,
        cpu_percent=used / window * 100,
        heartbeats=sum(stream.heartbeats for stream in load.streams) / STREAMS,
        lost=outcome.cut,
        release_seconds=float(seen["last_request"]) - ready_at,
        answered_seconds=max(firsts, default=ready_at) - ready_at,
    )


async def _queued(port: int, count: int) -> None:
    async def all_queued() -> bool:
        pending: int = (await call_json(port, "/noctaya/queue"))["pending"]
        return pending >= count

    await until(all_queued, within=60, every=0.05)
