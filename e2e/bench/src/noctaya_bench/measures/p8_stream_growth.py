"""P8: what a chunk costs when there are sixteen times as many streams at the same chunk rate."""

from __future__ import annotations

import functools

from ..figures import median, paired_ratio, write_number
from ..lab import Lab
from ..peers.lineup import Contestant, start_lineup
from ..rounds import stream_round
from ..verdicts import Finding, at_most

FEW, MANY = 64, 1024
FEW_INTERVAL_MS, MANY_INTERVAL_MS = 20, 320
GROWTH_LIMIT = 0.2
CONTESTANTS = (Contestant.NGINX, Contestant.PROTOCOL, Contestant.ASGI, Contestant.GO)


async def measure(lab: Lab) -> Finding:
    """3,200 chunks a second both times, so that only the number of streams differs."""
    backend = await lab.start_backend()
    lineup = await start_lineup(lab, backend, CONTESTANTS[:2] if lab.quick else CONTESTANTS)
    once = functools.partial(stream_round, backend=backend, seconds=lab.pick(quick=2.0, full=3.0))
    finding = Finding(
        measure="P8",
        title=f"From {FEW} to {MANY:,} streams",
        columns=("proxy", f"CPU us a chunk, {FEW}", f"CPU us a chunk, {MANY:,}", "growth", "streams cut"),
    )
    few: dict[Contestant, list[float]] = {contestant: [] for contestant in lineup}
    many: dict[Contestant, list[float]] = {contestant: [] for contestant in lineup}
    cut = dict.fromkeys(lineup, 0)
    for _ in range(lab.pick(quick=2, full=3)):
        for contestant, peer in lineup.items():
            one = await once(peer, streams=FEW, interval_ms=FEW_INTERVAL_MS)
            other = await once(peer, streams=MANY, interval_ms=MANY_INTERVAL_MS)
            few[contestant].append(one.cpu_us)
            many[contestant].append(other.cpu_us)
            cut[contestant] += one.outcome.cut + other.outcome.cut
    growth = {contestant: paired_ratio(many[contestant], few[contestant]) - 1 for contestant in lineup}
    for contestant in lineup:
        costs = write_number(median(few[contestant])), write_number(median(many[contestant]))
        finding.rows.append((contestant.value, *costs, f"{growth[contestant]:+.0%}", str(cut[contestant])))
    ours = growth[Contestant.PROTOCOL]
    finding.verdicts.append(
        at_most(f"CPU a chunk grows < {GROWTH_LIMIT:.0%}", ours, GROWTH_LIMIT, f"{ours:+.0%}")
    )
    lost = cut[Contestant.PROTOCOL]
    finding.verdicts.append(at_most("no stream cut", lost, 0, f"{lost} cut"))
    return finding
