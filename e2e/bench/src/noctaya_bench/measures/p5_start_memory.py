"""P5: resident memory shortly after the start, before any request."""

from __future__ import annotations

import asyncio

from ..children import free_port
from ..lab import Lab
from ..peers.gateway import start_gateway
from ..peers.lineup import Contestant, start_lineup
from ..verdicts import Finding, at_most
from .p1_json_cost import CONTESTANTS

LIMIT_MB = 60
SETTLE_SECONDS = 2.0
TOKEN = "bench-token-0123456789abcdef0123456789abcdef"


async def measure(lab: Lab) -> Finding:
    """The gateway twice: alone with its own scaler, and as one of several that report to an aggregate."""
    backend = await lab.start_backend()
    lineup = await start_lineup(lab, backend, CONTESTANTS)
    token_file = lab.directory / "demand-token"
    token_file.write_text(f"{TOKEN}\n")
    settings = {
        "NOCTAYA_DEMAND_AGGREGATOR_URL": f"http://127.0.0.1:{free_port()}/v1/demand",
        "NOCTAYA_DEMAND_AUTH_TOKEN_FILE": str(token_file),
    }
    reporting = await start_gateway(lab, backend.port, env=settings)
    await asyncio.sleep(SETTLE_SECONDS)
    finding = Finding(measure="P5", title="Memory at start", columns=("proxy", "RSS MB"))
    sizes = {contestant.value: peer.rss_bytes() / 2**20 for contestant, peer in lineup.items()}
    sizes["gateway (protocol), one of several: reports, no gRPC"] = reporting.rss_bytes() / 2**20
    finding.rows = [(name, f"{size:.0f}") for name, size in sizes.items()]
    ours = sizes[Contestant.PROTOCOL]
    finding.verdicts.append(at_most(f"RSS <= {LIMIT_MB} MB", ours, LIMIT_MB, f"{ours:.0f} MB"))
    return finding
