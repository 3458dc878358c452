"""P1: CPU a JSON request at 32 connections, against nginx and a tuned Go ReverseProxy."""

from __future__ import annotations

import functools

from ..figures import median, paired_ratio, write_number
from ..lab import Lab
from ..peers.lineup import Contestant, start_lineup
from ..rounds import JsonRound, alternate, json_round
from ..verdicts import Finding, at_most
from ..wrk import write_script

CONNECTIONS = 32
NGINX_LIMIT = 2.2
GO_LIMIT = 0.3
CONTESTANTS = (
    Contestant.NGINX,
    Contestant.PROTOCOL,
    Contestant.ASGI,
    Contestant.GO,
    Contestant.FIRST_TRY,
)


async def measure(lab: Lab) -> Finding:
    """Alternate all proxies; ratios are medians of paired rounds. The row "direct" is the stub's own cost."""
    backend = await lab.start_backend()
    lineup = await start_lineup(lab, backend, (Contestant.DIRECT, *CONTESTANTS))
    once = functools.partial(
        json_round,
        wrk=lab.tools.wrk,
        script=write_script(lab.directory),
        connections=CONNECTIONS,
        seconds=lab.pick(quick=2, full=3),
    )
    await alternate(lineup, functools.partial(once, seconds=1), rounds=1)
    seen = await alternate(lineup, once, rounds=lab.pick(quick=3, full=5))
    finding = Finding(
        measure="P1",
        title=f"JSON, {CONNECTIONS} connections",
        columns=("proxy", "CPU us a request", "to nginx", "requests/s", "errors"),
    )
    for contestant, rounds in seen.items():
        finding.rows.append(_row(contestant, rounds, seen.get(Contestant.NGINX)))
    ours = _costs(seen[Contestant.PROTOCOL])
    for other, limit in ((Contestant.NGINX, NGINX_LIMIT), (Contestant.GO, GO_LIMIT)):
        ratio = paired_ratio(ours, _costs(seen[other])) if other in seen else None
        text = f"{ratio:.2f} x" if ratio is not None else f"{other} is not installed"
        finding.verdicts.append(at_most(f"CPU a request <= {limit} x {other}", ratio, limit, text))
    errors = sum(one.load.errors for one in seen[Contestant.PROTOCOL])
    finding.verdicts.append(at_most("no error", errors, 0, f"{errors} errors"))
    return finding


def _costs(rounds: list[JsonRound]) -> list[float]:
    return [one.cpu_us for one in rounds]


def _row(contestant: Contestant, rounds: list[JsonRound], nginx: list[JsonRound] | None) -> tuple[str, ...]:
    costs = _costs(rounds)
    return (
        contestant,
        write_number(median(costs)),
        f"{paired_ratio(costs, _costs(nginx)):.2f}" if nginx else "-",
        write_number(median(one.load.rate for one in rounds)),
        str(sum(one.load.errors for one in rounds)),
    )
