"""G9: a failure that stands is told anew to every gateway for every activation that begins meanwhile."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from cluster import Cluster, running, waiting
from hypothesis import given
from hypothesis import strategies as st
from noctaya_operator.activation_poller import WATCHFUL, activations_url
from noctaya_operator.gateway_notices import failure_change, failure_stands
from noctaya_operator.kube.resources import PODS

FAILURE, OF = "serving.noctaya.io/activation-failure", "serving.noctaya.io/activation-failure-of"
FIRST, SECOND, THIRD = "1" * 32, "2" * 32, "3" * 32
ADDRESS, OTHER = "10.0.0.9", "10.0.0.10"
NAMES = {ADDRESS: "chat-gateway-x", OTHER: "chat-gateway-y"}
WHY = "can't be pulled: it does not exist"

ids = st.sampled_from([None, FIRST, SECOND, THIRD])
reasons = st.sampled_from([None, "no such image", "it keeps crashing"])


@given(st.lists(st.tuples(reasons, ids), max_size=12))
def test_whatever_follows_what_a_gateway_reads_what_is_so_and_news_for_each_activation(
    story: list[tuple[str | None, str | None]],
) -> None:
    has: dict[str, str] = {}
    for failure, of in story:
        before, told = has.get(FAILURE), has.get(OF)
        change = failure_change(has, failure, of=of)
        has |= {name: value for name, value in change.items() if value is not None}
        for gone in (name for name, value in change.items() if value is None):
            del has[gone]
        after = has.get(FAILURE)
        assert (after.strip() if after is not None else None) == failure
        assert failure_change(has, failure, of=of) == {}, "told once"
        assert failure_change(has, failure, of=None) == {}, "a gateway that does not answer is told once"
        if failure is None:
            assert not has
        elif of not in {None, told}:
            assert after != before, "a file is written only when it differs"
            assert has[OF] == of


def test_who_was_never_told_of_a_failure_has_none() -> None:
    assert failure_change({}, None, of=FIRST) == {}
    assert not failure_stands([{"metadata": {"annotations": {OF: FIRST}}}, {"metadata": {}}])
    assert failure_stands([{"metadata": {}}, {"metadata": {"annotations": {FAILURE: WHY}}}])


def says(cluster: Cluster, address: str, *activations: str, ended: bool = False) -> None:
    """The gateway at an address tells of activations, the newest first; all but the first are over."""
    begun = (cluster.now() - timedelta(seconds=1)).isoformat()

    def body() -> bytes:
        over = {"ended": begun, "outcome": "failed"}
        listed = [
            {"id": name, "requested": begun, **(over if place or ended else {})}
            for place, name in enumerate(activations)
        ]
        return json.dumps({"now": cluster.now().isoformat(), "activations": listed}).encode()

    cluster.progress[activations_url(address)] = body


def told(cluster: Cluster, address: str = ADDRESS) -> tuple[str, str | None]:
    annotations = cluster.the(PODS, NAMES[address])["metadata"].get("annotations") or {}
    return annotations.get(FAILURE, ""), annotations.get(OF)


async def failing(cluster: Cluster, *addresses: str) -> None:
    """A service whose image can't be pulled, for long enough."""
    await cluster.idle_service()
    for address in addresses:
        await cluster.gateway_pod(name=NAMES[address], address=address)
        says(cluster, address, FIRST)
    await cluster.scale(1)
    await cluster.pod(waiting("ErrImagePull", message="not found"))
    await cluster.settle(65)


@pytest.mark.looptime
async def test_g9_the_next_activation_is_told_what_stands_within_seconds_and_once() -> None:
    async with Cluster() as cluster:
        await failing(cluster, ADDRESS)
        before, of = told(cluster)
        assert WHY in before
        assert of == FIRST
        says(cluster, ADDRESS, FIRST, ended=True)
        await cluster.settle(20)
        assert told(cluster) == (before, FIRST)
        says(cluster, ADDRESS, SECOND, FIRST)
        await cluster.settle(WATCHFUL + 0.5)
        after, of = told(cluster)
        assert of == SECOND
        assert after != before
        assert after.strip() == before.strip()
        cluster.forget_requests()
        await cluster.settle(300)
        assert cluster.writes() == []


@pytest.mark.looptime
async def test_g9_each_gateway_is_told_for_its_own_activation() -> None:
    async with Cluster(gateways=2) as cluster:
        await failing(cluster, ADDRESS, OTHER)
        says(cluster, ADDRESS, SECOND, FIRST)
        before = told(cluster, OTHER)
        await cluster.settle(WATCHFUL + 0.5)
        assert told(cluster)[1] == SECOND
        assert told(cluster, OTHER) == before
        says(cluster, OTHER, THIRD, FIRST)
        await cluster.settle(WATCHFUL + 0.5)
        assert told(cluster, OTHER)[1] == THIRD
        assert told(cluster)[1] == SECOND


@pytest.mark.looptime
async def test_g9_another_operator_knows_what_was_told() -> None:
    async with Cluster() as cluster:
        await failing(cluster, ADDRESS)
        cluster.forget_requests()
        await cluster.restart()
        await cluster.settle(60)
        assert cluster.writes() == []
        says(cluster, ADDRESS, SECOND, FIRST)
        await cluster.settle(WATCHFUL + 0.5)
        assert told(cluster)[1] == SECOND


@pytest.mark.looptime
async def test_g9_gateways_that_do_not_answer_are_told_once_and_no_pass_waits_for_them() -> None:
    async with Cluster() as cluster:
        await failing(cluster, ADDRESS)
        del cluster.progress[activations_url(ADDRESS)]
        cluster.forget_requests()
        await cluster.settle(120)
        assert cluster.writes() == []
        await cluster.pod(running(ready=True))
        await cluster.scale(1, ready=1)
        assert told(cluster) == ("", None)
