"""P3: latency a proxy adds to one request at a time, against the stub measured directly."""

from __future__ import annotations

import functools

from ..figures import median
from ..lab import Lab
from ..peers.lineup import Contestant, start_lineup
from ..rounds import JsonRound, alternate, json_round
from ..verdicts import Finding, at_most
from ..wrk import write_script

ADDED_P50_LIMIT_MS = 0.2
CONTESTANTS = (
    Contestant.DIRECT,
    Contestant.NGINX,
    Contestant.PROTOCOL,
    Contestant.ASGI,
    Contestant.GO,
)


async def measure(lab: Lab) -> Finding:
    """Medians over rounds of the difference to the direct round before it."""
    backend = await lab.start_backend()
    lineup = await start_lineup(lab, backend, CONTESTANTS)
    once = functools.partial(
        json_round,
        wrk=lab.tools.wrk,
        script=write_script(lab.directory),
        connections=1,
        seconds=lab.pick(quick=1, full=2),
    )
    await alternate(lineup, functools.partial(once, seconds=1), rounds=1)
    seen = await alternate(lineup, once, rounds=lab.pick(quick=3, full=5))
    direct = seen[Contestant.DIRECT]
    finding = Finding(
        measure="P3",
        title="Latency at 1 connection",
        columns=("proxy", "p50 ms", "p99 ms", "added p50 ms", "added p99 ms", "CPU us a request"),
    )
    for contestant, rounds in seen.items():
        finding.rows.append(_row(contestant, rounds, direct))
    added = added_ms(
        [one.load.p50_ms for one in seen[Contestant.PROTOCOL]], [one.load.p50_ms for one in direct]
    )
    promise = f"p50 grows by <= {ADDED_P50_LIMIT_MS} ms"
    finding.verdicts.append(at_most(promise, added, ADDED_P50_LIMIT_MS, f"{added:.3f} ms"))
    return finding


def added_ms(ours: list[float], direct: list[float]) -> float:
    """Median of the differences round by round."""
    return median(one - other for one, other in zip(ours, direct, strict=True))


def _row(contestant: Contestant, rounds: list[JsonRound], direct: list[JsonRound]) -> tuple[str, ...]:
    middle, tail = [one.load.p50_ms for one in rounds], [one.load.p99_ms for one in rounds]
    more = added_ms(middle, [one.load.p50_ms for one in direct])
    more_tail = added_ms(tail, [one.load.p99_ms for one in direct])
    return (
        contestant,
        f"{median(middle):.3f}",
        f"{median(tail):.2f}",
        "-" if contestant is Contestant.DIRECT else f"{more:.3f}",
        "-" if contestant is Contestant.DIRECT else f"{more_tail:.2f}",
        "-" if contestant is Contestant.DIRECT else f"{median(one.cpu_us for one in rounds):.0f}",
    )
