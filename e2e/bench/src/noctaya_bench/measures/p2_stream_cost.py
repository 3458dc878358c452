"""P2: CPU a chunk of 64 paced streams, against nginx."""

from __future__ import annotations

import functools

from ..figures import median, paired_ratio, write_number
from ..lab import Lab
from ..peers.lineup import Contestant, start_lineup
from ..rounds import StreamRound, alternate, stream_round
from ..verdicts import Finding, at_most
from .p1_json_cost import CONTESTANTS

STREAMS = 64
INTERVAL_MS = 20  # 50 tokens a second a stream, what a fast model gives one user
NGINX_LIMIT = 1.4


async def measure(lab: Lab) -> Finding:
    """3,200 chunks of 150 bytes a second, spread evenly; every stream must end with `[DONE]`."""
    backend = await lab.start_backend()
    lineup = await start_lineup(lab, backend, CONTESTANTS)
    once = functools.partial(
        stream_round,
        backend=backend,
        streams=STREAMS,
        interval_ms=INTERVAL_MS,
        seconds=lab.pick(quick=2.0, full=3.0),
    )
    seen = await alternate(lineup, once, rounds=lab.pick(quick=2, full=4))
    finding = Finding(
        measure="P2",
        title=f"SSE, {STREAMS} streams, a 150-byte chunk every {INTERVAL_MS} ms each",
        columns=("proxy", "CPU us a chunk", "to nginx", "chunks/s", "streams cut"),
    )
    nginx = seen.get(Contestant.NGINX)
    for contestant, rounds in seen.items():
        finding.rows.append(_row(contestant, rounds, nginx))
    ours = seen[Contestant.PROTOCOL]
    ratio = paired_ratio(_costs(ours), _costs(nginx)) if nginx else None
    text = f"{ratio:.2f} x" if ratio is not None else "nginx is not installed"
    finding.verdicts.append(at_most(f"CPU a chunk <= {NGINX_LIMIT} x nginx", ratio, NGINX_LIMIT, text))
    cut = sum(one.outcome.cut for one in ours)
    finding.verdicts.append(at_most("no stream cut", cut, 0, f"{cut} cut"))
    return finding


def _costs(rounds: list[StreamRound]) -> list[float]:
    return [one.cpu_us for one in rounds]


def _row(
    contestant: Contestant, rounds: list[StreamRound], nginx: list[StreamRound] | None
) -> tuple[str, ...]:
    costs = _costs(rounds)
    return (
        contestant,
        write_number(median(costs)),
        f"{paired_ratio(costs, _costs(nginx)):.2f}" if nginx else "-",
        write_number(median(one.rate for one in rounds)),
        str(sum(one.outcome.cut for one in rounds)),
    )
