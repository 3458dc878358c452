"""What a service's status can't say is said by an Event."""

from __future__ import annotations

import pytest
from cluster import NAMESPACE, Cluster
from noctaya_operator.kinds import LLM_SERVICES

pytestmark = pytest.mark.looptime


def refuse_statuses(cluster: Cluster) -> None:
    """As the API server does for an object on which one of its rules can't be evaluated."""
    cluster.server.faults.fail(
        status=422,
        reason="Invalid",
        message="spec.scaling: Invalid value: rule failed",
        times=10_000,
        verb="update",
        resource=LLM_SERVICES,
        subresource="status",
    )


async def test_o1_a_failure_that_no_status_can_tell_is_told_by_an_event() -> None:
    async with Cluster() as cluster:
        refuse_statuses(cluster)
        await cluster.service(runtime={"name": "missing"})
        assert cluster.status() == {}
        assert cluster.events() == [("Warning", "RuntimeResolution", "ReportStatus")]


async def test_o1_what_is_no_failure_is_not_told_and_the_service_is_brought_up_all_the_same() -> None:
    async with Cluster() as cluster:
        refuse_statuses(cluster)
        await cluster.idle_service()
        assert cluster.the_deployment()["metadata"]["namespace"] == NAMESPACE
        assert cluster.events() == []


async def test_o1_a_status_that_is_refused_is_not_written_again_and_again() -> None:
    async with Cluster() as cluster:
        refuse_statuses(cluster)
        await cluster.service(runtime={"name": "missing"})
        cluster.forget_requests()
        await cluster.settle(600)
        assert cluster.writes() == []
