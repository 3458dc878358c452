"""C1: cold starts on a real cluster with KEDA, of a model server that is ready at once: whose time it is."""

from __future__ import annotations

import asyncio
import os
import time

from noctaya_scenarios.scene import Scene

from ..activation.cycle import cold_start, plain_start
from ..activation.ground import SERVICE, about, cluster_up, say, service_at_zero
from ..activation.moments import COLUMNS, ColdStart, PlainStart, phases, row
from ..activation.observer import observing
from ..cluster.api import Api
from ..figures import percentile
from ..lab import Lab
from ..verdicts import Finding, at_most

ADDED_LIMIT_MS = 150.0
FIRST_BYTE_LIMIT_MS = 100.0
GATEWAYS = (1, 2)
"""One gateway has the scaler in it; with two an aggregate scaler stands between them and KEDA."""
SETTLE_SECONDS = 1.0


async def measure(lab: Lab) -> Finding:
    """Cold starts and plain scalings by turns, with one gateway and with two."""
    count = lab.pick(quick=5, full=20)
    finding = Finding(
        measure="C1",
        title=f"{count} cold starts with one gateway, {count} with two",
        columns=("gateways", *COLUMNS),
    )
    loads = [os.getloadavg()[0]]
    with cluster_up() as cluster:
        for gateways in GATEWAYS:
            folder = lab.directory / str(gateways)
            with service_at_zero(cluster, folder, gateways=gateways) as (world, scene):
                starts, plain = await series(scene, world.api.server, count=count)
                finding.versions = about(cluster, world)
            add_to(finding, gateways, starts, plain)
            loads.append(os.getloadavg()[0])
    finding.versions["load"] = " -> ".join(f"{load:.1f}" for load in loads)
    return finding


async def series(scene: Scene, server: str, *, count: int) -> tuple[list[ColdStart], list[PlainStart]]:
    """So many of both, one after the other."""
    client = scene.client(SERVICE)
    scaler = "{}:{}".format(*scene.scaler_address(SERVICE))
    starts: list[ColdStart] = []
    plain: list[PlainStart] = []
    async with (
        Api(server) as api,
        observing(api, scene.namespace, service=SERVICE, scaler=scaler) as observer,
    ):
        while len(starts) < count:
            await asyncio.sleep(SETTLE_SECONDS)
            starts.append(await cold_start(observer, client.host, client.port))
            # The service stays up for some seconds yet, for clients that retry: time for the other kind.
            plain.append(await plain_start(observer, api, scene.namespace))
            begun = time.monotonic()
            await asyncio.to_thread(scene.await_zero, SERVICE)
            cold, ours, alone = starts[-1].total * 1000, starts[-1].added * 1000, plain[-1].total * 1000
            say(
                f"  {len(starts)} of {count}: {cold:.0f} ms, ours {ours:.0f}; plain {alone:.0f} ms; "
                f"back at zero after {time.monotonic() - begun:.0f} s"
            )
    return starts, plain


def add_to(finding: Finding, gateways: int, starts: list[ColdStart], plain: list[PlainStart]) -> None:
    """Rows and verdicts of one series."""
    finding.rows += [(str(gateways), *row(phase)) for phase in phases(starts, plain)]
    which = "1 gateway" if gateways == 1 else f"{gateways} gateways"
    added = percentile([start.added * 1000 for start in starts], 50)
    first = percentile([start.since_ready * 1000 for start in starts], 50)
    finding.verdicts += [
        at_most(
            f"{which}: added by Noctaya < {ADDED_LIMIT_MS:.0f} ms at the median",
            added,
            ADDED_LIMIT_MS,
            f"{added:.0f} ms",
        ),
        at_most(
            f"{which}: first byte within {FIRST_BYTE_LIMIT_MS:.0f} ms of Ready at the median",
            first,
            FIRST_BYTE_LIMIT_MS,
            f"{first:.0f} ms",
        ),
    ]
