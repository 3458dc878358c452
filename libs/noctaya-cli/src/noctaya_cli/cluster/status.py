"""`noctaya status`: every service in a line, what is wrong first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from noctaya_cli.cluster.absent import NOT_INSTALLED
from noctaya_cli.cluster.access import ClusterError, NotThere, Reader, services_path
from noctaya_cli.cluster.demand import (
    GatewayNumbers,
    ProxyForbidden,
    gateway_pods,
    read_demand,
    streams_of,
)
from noctaya_cli.cluster.gateway_trouble import with_trouble
from noctaya_cli.cluster.service_view import ServiceView, view_of
from noctaya_cli.cluster.table import draw_table

HEADER = ("NAME", "PHASE", "REPLICAS", "DEMAND", "QUEUE", "KEPT", "LAST COLD START", "PROBLEM")

SPARE = ("LAST COLD START", "QUEUE", "KEPT", "DEMAND", "REPLICAS")
"""Columns that a narrow terminal does without, the first one first."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """All services that were asked for."""

    services: tuple[ServiceView, ...]
    numbers: Mapping[tuple[str, str], GatewayNumbers]
    remark: str = ""
    """Why numbers are missing, if they are."""


def read_fleet(cluster: Reader, namespace: str | None) -> Fleet:
    """The services of a namespace, or of all with None.

    Raises:
        ClusterError: they can't be read; also when the CRDs are not installed.
    """
    try:
        raw = cluster.items(services_path(namespace))
    except NotThere as error:
        raise ClusterError(NOT_INSTALLED) from error
    services = [view_of(each) for each in raw]
    streams: dict[tuple[str, str], int | None] = {}
    numbers: Mapping[tuple[str, str], GatewayNumbers] = {}
    remark = ""
    if services:
        try:
            numbers = read_demand(cluster, gateway_pods(cluster, namespace))
            for key, told in numbers.items():
                # Few are in this state, and only briefly: no request more for the others.
                if told.demand and any(
                    key == (each.namespace, each.name) and not each.ready for each in services
                ):
                    streams[key] = streams_of(cluster, *key, told)
        except ProxyForbidden:
            remark = "demand and queue are not shown: they take the right to get pods/proxy"
        except ClusterError as error:
            remark = f"demand and queue are not shown: {error}"
    seen = (
        with_trouble(each, numbers.get(key), streams.get(key))
        for each in services
        for key in ((each.namespace, each.name),)
    )
    return Fleet(services=tuple(sorted(seen, key=_order)), numbers=numbers, remark=remark)


def draw_fleet(fleet: Fleet, *, now: datetime, everywhere: bool, width: int | None) -> Iterator[str]:
    """The table; below it what is wrong in full, where the terminal has no room for it in a row."""
    rows = [row_of(fleet, each, now=now) for each in fleet.services]
    header: tuple[str, ...] = HEADER
    if everywhere:
        header = ("NAMESPACE", *header)
        rows = [(each.namespace, *row) for each, row in zip(fleet.services, rows, strict=True)]
    drawn = list(draw_table(header, rows, width=None))
    if width is None or max(map(len, drawn)) <= width:
        yield from drawn
        return
    wrong = [(each, each.problem) for each in fleet.services if each.problem]
    reasons = {(each.namespace, each.name): found.reason for each, found in wrong}
    rows = [
        (*row[:-1], reasons.get((each.namespace, each.name), "-"))
        for each, row in zip(fleet.services, rows, strict=True)
    ]
    spare = SPARE if any(each.keep for each in fleet.services) else ("KEPT", *SPARE)
    yield from draw_table(header, rows, width=width, spare=spare)
    if wrong:
        yield ""
    for each, found in wrong:
        yield from textwrap.wrap(
            f"✖ {each.name}: {found.reason}: {' '.join(found.message.split())}",
            width=width,
            subsequent_indent="  ",
            max_lines=3,
            placeholder=" …",
        )
    if wrong:
        first = wrong[0][0]
        yield f"→ noctaya explain {first.name} -n {first.namespace}"


def row_of(fleet: Fleet, service: ServiceView, *, now: datetime) -> tuple[str, ...]:
    """The cells of one service, without its namespace."""
    numbers = fleet.numbers.get((service.namespace, service.name))
    problem = service.problem
    said = f"{problem.reason}: {problem.message}" if problem else "-"
    return (
        service.name,
        f"{service.phase}*" if service.stale else service.phase,
        f"{service.ready}/{service.maximum}",
        "-" if numbers is None else str(numbers.demand),
        "-" if numbers is None else str(numbers.held),
        service.kept(now),
        service.cold_start(now),
        " ".join(said.split()),
    )


def json_of(fleet: Fleet, *, now: datetime) -> list[dict[str, Any]]:
    """The same for programs."""
    found = []
    for each in fleet.services:
        numbers = fleet.numbers.get((each.namespace, each.name))
        record = each.activation
        found.append(
            {
                "namespace": each.namespace,
                "name": each.name,
                "phase": each.phase,
                "stale": each.stale,
                "replicas": {"ready": each.ready, "max": each.maximum},
                "demand": numbers.demand if numbers else None,
                "queue": numbers.held if numbers else None,
                "runtime": each.runtime,
                "model": each.model,
                "keep": dict(each.keep) or None,
                "lastColdStart": each.cold_start(now) if record else None,
                "problems": [
                    {"condition": p.condition, "reason": p.reason, "message": p.message}
                    for p in each.problems
                ],
            }
        )
    return found


def _order(service: ServiceView) -> tuple[bool, str, str]:
    return (service.problem is None, service.namespace, service.name)
