"""`noctaya status`: every service in a line, what is wrong first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from noctaya_cli.cluster.access import ClusterError, NotThere, Reader, services_path
from noctaya_cli.cluster.demand import GatewayNumbers, ProxyForbidden, gateway_pods, read_demand
from noctaya_cli.cluster.gateway_trouble import with_trouble
from noctaya_cli.cluster.service_view import ServiceView, view_of
from noctaya_cli.cluster.table import draw_table

HEADER = ("NAME", "PHASE", "REPLICAS", "DEMAND", "QUEUE", "KEPT", "LAST COLD START", "PROBLEM")


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
        raise ClusterError(
            "this cluster has no LLMServices: the CRDs of Noctaya are not installed"
        ) from error
    services = [view_of(each) for each in raw]
    numbers: Mapping[tuple[str, str], GatewayNumbers] = {}
    remark = ""
    if services:
        try:
            numbers = read_demand(cluster, gateway_pods(cluster, namespace))
        except ProxyForbidden:
            remark = "demand and queue are not shown: they take the right to get pods/proxy"
        except ClusterError as error:
            remark = f"demand and queue are not shown: {error}"
    seen = (with_trouble(each, numbers.get((each.namespace, each.name))) for each in services)
    return Fleet(services=tuple(sorted(seen, key=_order)), numbers=numbers, remark=remark)


def draw_fleet(fleet: Fleet, *, now: datetime, everywhere: bool, width: int | None) -> Iterator[str]:
    """The table."""
    rows = [row_of(fleet, each, now=now) for each in fleet.services]
    header: tuple[str, ...] = HEADER
    if everywhere:
        header = ("NAMESPACE", *header)
        rows = [(each.namespace, *row) for each, row in zip(fleet.services, rows, strict=True)]
    yield from draw_table(header, rows, width=width)


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
