"""P6: 256 connections for a minute: memory stays flat, nothing fails, the tail stays near nginx's."""

from __future__ import annotations

import asyncio

from ..figures import median, paired_ratio, write_number
from ..lab import Lab
from ..peers.lineup import Contestant, start_lineup
from ..peers.peer import Peer
from ..rounds import JsonRound, json_round
from ..verdicts import Finding, at_most
from ..wrk import write_script

CONNECTIONS = 256
ROUNDS = 3
TAIL_LIMIT = 3.0
GROWTH_LIMIT_MB = 2.0  # what "flat" means: an allocator's page or two, not a leak


async def measure(lab: Lab) -> Finding:
    """Three rounds of gateway and nginx in turn; memory is compared after the first and after the last."""
    backend = await lab.start_backend()
    lineup = await start_lineup(lab, backend, (Contestant.PROTOCOL, Contestant.NGINX))
    script = write_script(lab.directory)
    gateway, nginx = lineup[Contestant.PROTOCOL], lineup.get(Contestant.NGINX)

    async def load(peer: Peer, seconds: int) -> JsonRound:
        return await json_round(
            peer, wrk=lab.tools.wrk, script=script, connections=CONNECTIONS, seconds=seconds
        )

    ours: list[JsonRound] = []
    theirs: list[JsonRound] = []
    sizes: list[float] = []
    for _ in range(ROUNDS):
        ours.append(await load(gateway, lab.pick(quick=7, full=20)))
        await asyncio.sleep(0.5)
        sizes.append(gateway.rss_bytes() / 2**20)
        if nginx is not None:
            theirs.append(await load(nginx, lab.pick(quick=3, full=7)))
    total = sum(one.load.seconds for one in ours)
    finding = Finding(
        measure="P6",
        title=f"{CONNECTIONS} connections, {total:.0f} s",
        columns=("proxy", "requests", "errors", "requests/s", "p50 ms", "p99 ms", "CPU us a request"),
        rows=[_row(Contestant.PROTOCOL, ours), *([_row(Contestant.NGINX, theirs)] if theirs else [])],
    )
    errors = sum(one.load.errors for one in ours)
    growth = sizes[-1] - sizes[0]
    finding.verdicts.append(at_most("no error", errors, 0, f"{errors} errors"))
    text = f"{growth:+.1f} MB ({sizes[0]:.0f} to {sizes[-1]:.0f} MB)"
    finding.verdicts.append(at_most(f"RSS flat (<= {GROWTH_LIMIT_MB:g} MB)", growth, GROWTH_LIMIT_MB, text))
    ratio = (
        paired_ratio([one.load.p99_ms for one in ours], [one.load.p99_ms for one in theirs])
        if theirs
        else None
    )
    text = f"{ratio:.2f} x" if ratio is not None else "nginx is not installed"
    finding.verdicts.append(at_most(f"p99 <= {TAIL_LIMIT:g} x nginx", ratio, TAIL_LIMIT, text))
    return finding


def _row(contestant: Contestant, rounds: list[JsonRound]) -> tuple[str, ...]:
    return (
        contestant.value,
        f"{sum(one.load.requests for one in rounds):,}",
        str(sum(one.load.errors for one in rounds)),
        write_number(median(one.load.rate for one in rounds)),
        f"{median(one.load.p50_ms for one in rounds):.1f}",
        f"{median(one.load.p99_ms for one in rounds):.1f}",
        write_number(median(one.cpu_us for one in rounds)),
    )
