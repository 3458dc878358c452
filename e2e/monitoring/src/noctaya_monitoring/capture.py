"""What the dashboards show of a few minutes of a running system: `python -m noctaya_monitoring.capture FILE`.

The queries are those of the dashboards, asked of the Prometheus that scraped; the answers go into FILE, from
which `docs/pictures/dashboards.py` draws. Nothing is smoothed or made up: three services, their clients come
and go, one has a queue that is too short, one model server breaks off its answers for a while.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from noctaya_apiserver.client import load_objects
from noctaya_apiserver.noctaya import REPOSITORY

from noctaya_monitoring.clients import clients
from noctaya_monitoring.dashboard import Dashboard, Query
from noctaya_monitoring.dashboards import ALL
from noctaya_monitoring.download import agent_address, downloading
from noctaya_monitoring.fleet import MODELS, PAIRS, Fleet, Wanted
from noctaya_monitoring.prometheus import Prometheus
from noctaya_monitoring.scrape import jobs

MONITORS: Final = REPOSITORY / "examples" / "observability" / "servicemonitors.yaml"
SECONDS: Final = 240.0
STEP: Final = 3.0
LOADS: Final = {"chat": 8.0, "coder": 14.0, "reader": 5.0}
"""Seconds that the model of each service takes to load."""
DOWNLOAD: Final[Any] = {
    "service": "large",
    "size": 96 << 20,
    "effect": {"bytes_per_second": 64 << 10},
}
"""A fourth service, whose weights take longer than all of this."""
DIGITS: Final = 4


@dataclass(frozen=True, kw_only=True)
class Act:
    """Clients of a service from `start` to `end`, in seconds."""

    start: float
    end: float
    service: str
    count: int
    tokens: int = 40
    pause: float = 0.5
    patience: float = 600.0
    key: str = ""


SCREEN, BATCH = "sk-of-the-screen", "sk-of-the-batch"
KEYS: Final = f"{SCREEN} name=screen\n{BATCH} name=batch rpm=6\n"
LIFE: Final = (
    Act(start=10, end=80, service="chat", count=3, key=SCREEN),
    Act(start=50, end=80, service="chat", count=1, key=BATCH),
    Act(start=40, end=110, service="coder", count=10, tokens=80),
    Act(start=60, end=150, service="reader", count=4),
    Act(start=130, end=190, service="chat", count=6, key=SCREEN),
    Act(start=130, end=160, service="chat", count=1, patience=0.7, pause=2.0, key=SCREEN),
    Act(start=130, end=190, service="chat", count=2, key=BATCH),
)
BREAKS: Final = (100.0, 115.0)
"""Between these seconds the model server of `reader` breaks off its answers."""


def main() -> int:
    """Run the system, ask, write."""
    parser = argparse.ArgumentParser(prog="noctaya_monitoring.capture", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    wanted = parser.parse_args()
    keys = {"authentication": {"secretRef": {"name": "keys", "key": "keys"}}}
    services = [
        Wanted(name="chat", spec={"endpoint": keys}, mounted={"client-auth/api-key": KEYS}),
        Wanted(name="coder", spec={"endpoint": {"maxQueue": 6}}),
        Wanted(name="reader", namespace=PAIRS),
    ]
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fleet = stack.enter_context(Fleet(place, wanted=services, agent=agent_address()))
        found = jobs(load_objects(MONITORS), found=fleet.discovery.file, places=fleet.places(), interval="1s")
        with Prometheus(place / "prometheus", jobs=found) as prometheus:
            folder = place / "download"
            folder.mkdir()
            stack.enter_context(downloading(fleet, folder, **DOWNLOAD))
            start = _live(fleet)
            answers = {
                "source": f"{prometheus.version()}, {len(services) + 1} services, {SECONDS:g} s",
                "seconds": SECONDS,
                "step": STEP,
                "dashboards": [_asked(each, prometheus, start=start) for each in ALL],
            }
    wanted.file.write_text(json.dumps(answers, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


def _live(fleet: Fleet) -> float:
    """Play `LIFE`; returns when it began, as Prometheus tells time."""
    for name, seconds in LOADS.items():
        keda = fleet.services[name].keda
        assert keda is not None
        keda.load_seconds = seconds
    start = time.time()
    moments = sorted({*BREAKS, SECONDS, *(act.start for act in LIFE), *(act.end for act in LIFE)})
    running: dict[Act, ExitStack] = {}
    for moment in moments:
        time.sleep(max(0.0, start + moment - time.time()))
        for act in LIFE:
            if act.end == moment:
                running.pop(act).close()
            if act.start == moment:
                stack = running[act] = ExitStack()
                url = fleet.services[act.service].url
                how: dict[str, Any] = {
                    "pause": act.pause,
                    "tokens": act.tokens,
                    "patience": act.patience,
                    "key": act.key,
                }
                stack.enter_context(clients(url, act.count, **how))
        if moment in BREAKS:
            stub = f"http://127.0.0.1:{fleet.services['reader'].stub.http()}/control"
            after = 5 if moment == BREAKS[0] else 0
            httpx.post(stub, json={"cutAfter": after}, trust_env=False).raise_for_status()
    return start


def _asked(dashboard: Dashboard, prometheus: Prometheus, *, start: float) -> dict[str, Any]:
    panels = []
    for panel, rendered in zip(dashboard.panels, dashboard.render()["panels"], strict=True):
        series = [each for query in panel.queries for each in _series(query, prometheus, start=start)]
        panels.append(
            {
                "title": panel.title,
                "kind": panel.kind,
                "unit": panel.unit,
                "stacked": panel.stacked,
                "place": rendered["gridPos"],
                "series": series,
            }
        )
    return {"uid": dashboard.uid, "title": dashboard.title, "panels": panels}


def _series(query: Query, prometheus: Prometheus, *, start: float) -> Iterator[dict[str, Any]]:
    found = prometheus.series(
        query.of(namespace=MODELS, service="chat"), start=start, end=start + SECONDS, step=STEP
    )
    for labels, points in found:
        values: list[float | None] = [None] * (round(SECONDS / STEP) + 1)
        for when, value in points:
            if math.isfinite(value):
                values[round((when - start) / STEP)] = float(f"{value:.{DIGITS}g}")
        if any(value is not None for value in values):
            yield {"name": named(query.legend, labels), "values": values}


def named(legend: str, labels: Mapping[str, str]) -> str:
    """A legend with its labels, as Grafana writes it."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), legend)


if __name__ == "__main__":
    sys.exit(main())
