"""Faults of clocks: one part's wall clock is wrong while it works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noctaya_api import names
from noctaya_scenarios.release import NAMESPACE, OPERATOR
from noctaya_scenarios.waiting import until

from noctaya_chaos.clocks import Workload, settable
from noctaya_chaos.field import COLD, WARM, Field

SKEW: Final = 90
"""Seconds: six times the length of a lease, nine times what a silent gateway is remembered for."""
OPERATOR_CONTAINER: Final = "manager"
LED_SECONDS: Final = 60.0
"""A lease that its holder could not release runs out after 15 s."""


def workloads(field: Field, part: str) -> list[Workload]:
    """The Deployments of a part of both services."""
    container, named = {
        "gateway": (names.CONTAINER_GATEWAY, names.gateway_name),
        "scaler": (names.CONTAINER_SCALER, names.scaler_name),
    }[part]
    return [
        Workload(namespace=field.scene.namespace, name=named(service), container=container)
        for service in (WARM, COLD)
    ]


def gateways_ahead(field: Field) -> Iterator[None]:
    """One of the two gateways of each service is ahead of everybody else."""
    yield from _skewed(field, "gateway", SKEW)


def scalers_behind(field: Field) -> Iterator[None]:
    """The aggregate scaler of each service is behind."""
    yield from _skewed(field, "scaler", -SKEW)


def _skewed(field: Field, part: str, seconds: int) -> Iterator[None]:
    rolled = workloads(field, part)
    with settable(field.lab.api, field.lab.access, rolled) as clocks:
        for workload, service in zip(rolled, (WARM, COLD), strict=True):
            clocks.set(workload, field.first(part, service), seconds)
        yield


def leader_ahead(field: Field) -> Iterator[None]:
    """The operator that leads is ahead of the cluster, whose Pods' times it puts beside its own."""
    yield from _operator(field, leading=True, seconds=SKEW)


def standby_ahead(field: Field) -> Iterator[None]:
    """The operator that stands by is ahead: to it the leader's lease looks as if it were long over."""
    yield from _operator(field, leading=False, seconds=SKEW)


def _operator(field: Field, *, leading: bool, seconds: int) -> Iterator[None]:
    workload = Workload(namespace=NAMESPACE, name=OPERATOR, container=OPERATOR_CONTAINER)
    with settable(field.lab.api, field.lab.access, [workload]) as clocks:
        leader = until(field.leading, within=LED_SECONDS, what="an operator leads after the roll-out")
        assert leader is not None
        others = [pod for pod in field.operators() if pod != leader]
        clocks.set(workload, leader if leading else others[0], seconds)
        yield
        field.expect(lambda: field.leading() == leader, within=1.0, what=f"{leader} leads throughout")
