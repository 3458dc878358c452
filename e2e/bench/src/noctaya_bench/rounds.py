"""Rounds: every peer is loaded in turn, again and again, so that a noisy minute hits all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .backend import Backend
from .children import ChildError
from .payloads import CHAT_PATH, request_bytes
from .peers.lineup import Contestant
from .peers.peer import Peer
from .streams import StreamLoad, StreamOutcome
from .wrk import WrkResult, run_wrk

ENDLESS = 1_000_000
Round = TypeVar("Round")
Lineup = Mapping[Contestant, Peer]


@dataclass(frozen=True, slots=True)
class JsonRound:
    """One bounded run of wrk against one peer."""

    load: WrkResult
    cpu_us: float
    """CPU microseconds of the peer a request."""


@dataclass(frozen=True, slots=True)
class StreamRound:
    """One window of paced streams through one peer."""

    outcome: StreamOutcome
    cpu_us: float
    """CPU microseconds of the peer a chunk."""
    rate: float
    """Chunks a second that reached the clients."""


async def alternate(
    lineup: Lineup, once: Callable[[Peer], Awaitable[Round]], *, rounds: int
) -> dict[Contestant, list[Round]]:
    """Run `once` against every peer in turn, `rounds` times."""
    seen: dict[Contestant, list[Round]] = {contestant: [] for contestant in lineup}
    for _ in range(rounds):
        for contestant, peer in lineup.items():
            seen[contestant].append(await once(peer))
    return seen


async def json_round(
    peer: Peer, *, wrk: str | None, script: Path, connections: int, seconds: int
) -> JsonRound:
    """Load `peer` with wrk and divide the CPU time it used by the requests it answered."""
    if wrk is None:
        raise ChildError("wrk is not installed")
    before = peer.cpu_seconds()
    load = await run_wrk(wrk, script, port=peer.port, connections=connections, seconds=seconds)
    used = peer.cpu_seconds() - before
    return JsonRound(load=load, cpu_us=used / max(1, load.requests) * 1e6)


async def stream_round(
    peer: Peer, *, backend: Backend, streams: int, interval_ms: int, seconds: float
) -> StreamRound:
    """Open paced streams through `peer` and divide its CPU time in a window by the chunks that came in it.

    The window begins after every stream had its first chunk and closes before the stub is told to end them:
    neither opening nor closing is part of the figure.
    """
    path = f"{CHAT_PATH}?chunks={ENDLESS}&every={interval_ms}"
    load = StreamLoad(peer.port, request_bytes(path, b'{"stream": true}'))
    try:
        await load.open(streams)
        await load.all_started(within=30)
        events, used = load.events, peer.cpu_seconds()
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        events, used = load.events - events, peer.cpu_seconds() - used
        lasted = asyncio.get_running_loop().time() - begin
        await backend.finish_streams()
        outcome = await load.all_ended(within=30)
    finally:
        load.close()
    return StreamRound(outcome=outcome, cpu_us=used / max(1, events) * 1e6, rate=events / lasted)
