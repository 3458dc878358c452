"""P5: resident memory shortly after the start, before any request."""

from __future__ import annotations

import asyncio

from ..lab import Lab
from ..peers.lineup import Contestant, start_lineup
from ..verdicts import Finding, at_most
from .p1_json_cost import CONTESTANTS

LIMIT_MB = 60
SETTLE_SECONDS = 2.0


async def measure(lab: Lab) -> Finding:
    """The gateway runs with its co-located scaler, as a single gateway does in a cluster."""
    backend = await lab.start_backend()
    lineup = await start_lineup(lab, backend, CONTESTANTS)
    await asyncio.sleep(SETTLE_SECONDS)
    finding = Finding(measure="P5", title="Memory at start", columns=("proxy", "RSS MB"))
    sizes = {contestant: peer.rss_bytes() / 2**20 for contestant, peer in lineup.items()}
    finding.rows = [(contestant.value, f"{size:.0f}") for contestant, size in sizes.items()]
    ours = sizes[Contestant.PROTOCOL]
    finding.verdicts.append(at_most(f"RSS <= {LIMIT_MB} MB", ours, LIMIT_MB, f"{ours:.0f} MB"))
    return finding
