"""P9: from the backend's readiness to the first byte of the answer at a client that was held."""

from __future__ import annotations

import asyncio
import random

from ..backend import Backend
from ..calls import call, call_json
from ..figures import percentile
from ..lab import Lab
from ..patience import until
from ..payloads import CHAT_PATH, chat_body, request_bytes
from ..peers.gateway import start_gateway
from ..peers.peer import Peer
from ..streams import StreamLoad
from ..verdicts import Finding, at_most

P50_LIMIT_MS = 50
P99_LIMIT_MS = 150
# One failed probe makes the service cold, and warm probes are frequent. It shortens a cycle and nothing else:
# the cadence while a request is held is the default.
SETTINGS = {"NOCTAYA_PROBE_FALL": "1", "NOCTAYA_PROBE_INTERVAL": "100ms", "NOCTAYA_READY_GRACE": "0s"}


async def measure(lab: Lab) -> Finding:
    """Many cold cycles; the moment of readiness is random against the gateway's probes."""
    backend = await lab.start_backend(ready=False)
    gateway = await start_gateway(lab, backend.port, env=SETTINGS)
    cycles = lab.pick(quick=40, full=120)
    times = [await wake(gateway, backend) * 1000 for _ in range(cycles)]
    middle, tail = percentile(times, 50), percentile(times, 99)
    finding = Finding(
        measure="P9",
        title=f"Ready to first byte, {cycles} cold cycles",
        columns=("min ms", "p50 ms", "p90 ms", "p99 ms", "max ms"),
        rows=[
            tuple(f"{value:.1f}" for value in (min(times), middle, percentile(times, 90), tail, max(times)))
        ],
    )
    finding.verdicts.append(at_most(f"p50 <= {P50_LIMIT_MS} ms", middle, P50_LIMIT_MS, f"{middle:.1f} ms"))
    finding.verdicts.append(at_most(f"p99 <= {P99_LIMIT_MS} ms", tail, P99_LIMIT_MS, f"{tail:.1f} ms"))
    return finding


async def wake(gateway: Peer, backend: Backend) -> float:
    """One cycle: cold, hold a stream, turn ready, take the time to its first event in seconds."""
    await backend.set_ready(False)
    await until(lambda: _is_cold(gateway), within=10)
    load = StreamLoad(gateway.port, request_bytes(f"{CHAT_PATH}?chunks=1&every=0", chat_body(stream=True)))
    try:
        await load.open(1)
        await until(lambda: _holds_one(gateway), within=10)
        await asyncio.sleep(random.uniform(0.1, 0.2))
        ready_at = await backend.set_ready(True)
        outcome = await load.all_ended(within=10)
    finally:
        load.close()
    first = load.streams[0].first_event
    if first is None or outcome.cut:
        raise RuntimeError(f"a held stream was lost: {outcome}")
    return first - ready_at


async def _is_cold(gateway: Peer) -> bool:
    """A cold gateway lists its models itself; a warm one asks the stub, which has no list."""
    request = request_bytes("/v1/models", b"", method="GET")
    status, body = await call(gateway.port, "/v1/models", request=request)
    return status == 200 and b'"data"' in body


async def _holds_one(gateway: Peer) -> bool:
    pending: int = (await call_json(gateway.port, "/noctaya/queue"))["pending"]
    return pending == 1
