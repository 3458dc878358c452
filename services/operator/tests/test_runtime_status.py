"""The status of runtimes: how many services use them, and what is wrong with them."""

from __future__ import annotations

import pytest
from cluster import Cluster, raw_runtime
from noctaya_operator.kinds import INFERENCE_RUNTIMES
from noctaya_operator.kube.objects import Object

pytestmark = pytest.mark.looptime


def status(cluster: Cluster, name: str = "engine") -> Object:
    found = cluster.server.find(INFERENCE_RUNTIMES, "", name)
    assert found is not None
    result: Object = found.get("status") or {}
    return result


async def test_a_runtime_tells_how_many_services_use_it() -> None:
    async with Cluster() as cluster:
        await cluster.settle()
        assert status(cluster)["services"] == 0
        await cluster.idle_service()
        await cluster.idle_service(name="other")
        await cluster.settle(10)
        found = status(cluster)
        assert found["conditions"][0].pop("lastTransitionTime").startswith("2026-11-30T08:00:")
        assert found == {
            "observedGeneration": 1,
            "services": 2,
            "conditions": [
                {
                    "type": "Usable",
                    "status": "True",
                    "reason": "Valid",
                    "message": "services can be served by this runtime",
                    "observedGeneration": 1,
                }
            ],
        }
        cluster.forget_requests()
        await cluster.settle(600)
        assert cluster.writes() == []


async def test_a_service_that_changes_its_runtime_is_counted_where_it_is() -> None:
    async with Cluster() as cluster:
        cluster.server.put(raw_runtime(name="second"))
        await cluster.idle_service()
        await cluster.change(runtime={"name": "second"})
        await cluster.settle(10)
        assert (status(cluster)["services"], status(cluster, "second")["services"]) == (0, 1)


async def test_what_is_wrong_with_a_runtime_is_told_on_it() -> None:
    async with Cluster() as cluster:
        await cluster.change_runtime(container={"args": ["{{ .Model.Size }}"]})
        condition = status(cluster)["conditions"][0]
        assert (condition["status"], condition["reason"]) == ("False", "Render")
        await cluster.change_runtime(container={"args": ["{{ .Model.Path }}"]})
        assert status(cluster)["conditions"][0]["status"] == "True"


async def test_o1_a_runtime_that_can_not_be_parsed_is_told_on_it() -> None:
    async with Cluster() as cluster:
        odd = raw_runtime(name="odd", priority="high")
        cluster.server.put(odd)
        await cluster.settle()
        condition = status(cluster, "odd")["conditions"][0]
        assert (condition["status"], condition["reason"]) == ("False", "InvalidSpec")
        assert "spec.priority" in condition["message"]


async def test_o9_a_wave_of_services_is_counted_a_few_times() -> None:
    async with Cluster() as cluster:
        await cluster.settle(60)
        cluster.forget_requests()
        for number in range(40):
            await cluster.service(name=f"s{number}")
        await cluster.settle(10)
        written = [each for each in cluster.writes() if each.resource == INFERENCE_RUNTIMES]
        assert status(cluster)["services"] == 40
        # 200 seconds, one every 10.
        assert len(written) <= 21
