"""O10: everything the operator asks for is in its rules, and every rule is used."""

from __future__ import annotations

import pytest
from cluster import NAMESPACE, PODS, Cluster, running, waiting
from noctaya_operator.rbac import CLUSTER_SCOPED, NAMESPACED, SELDOM, Right, Rule
from samples import raw_service

pytestmark = pytest.mark.looptime

NOT_SEEN_HERE: set[Right] = {
    *SELDOM,
    # A Job of the alpha is marked when it is taken over.
    ("batch", "jobs", "patch"),
}


def granted(rules: tuple[Rule, ...]) -> set[Right]:
    return {
        (rule.group, resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs
    }


def used(cluster: Cluster) -> set[Right]:
    rights = set()
    for request in cluster.server.requests:
        plural = request.resource.plural + (f"/{request.subresource}" if request.subresource else "")
        rights.add((request.resource.group, plural, request.verb))
        if request.verb == "patch" and "kind" in request.body:
            # Server-side apply of what may not be there yet asks for both.
            rights.add((request.resource.group, plural, "create"))
    return rights


async def test_o10_the_operator_asks_for_what_it_is_granted_and_no_more() -> None:
    async with Cluster(gateways=2) as cluster:
        # Everything a user does goes past the record.
        cluster.server.put(raw_service(cache={"prewarm": True, "retain": True}, scaling={"max": 2}))
        await cluster.settle()
        await cluster.gateways_answer()
        await cluster.pod(
            running(container="gateway"),
            name="chat-gateway-x",
            labels={"app.kubernetes.io/managed-by": "noctaya", "serving.noctaya.io/gateway": "chat"},
        )
        failing = waiting("ErrImagePull")
        await cluster.job_is("Complete")
        backend = cluster.the_deployment()
        backend["spec"]["replicas"] = 1
        cluster.server.put(backend)
        await cluster.pod(failing)
        await cluster.settle(120)
        await cluster.pod(running())
        # A new event of the same kind within minutes raises its count.
        await cluster.pod(failing)
        await cluster.settle(120)
        service = raw_service(cache={"prewarm": False, "retain": False}, resources={"cpu": "1"})
        service["metadata"] |= {"generation": 2}
        cluster.server.put(service)
        await cluster.settle()
        await cluster.restart(gateways=1)
        backend = cluster.the_deployment()
        backend["spec"]["replicas"] = 0
        cluster.server.put(backend)
        cluster.server.remove(PODS, NAMESPACE, "chat-abc")
        replacing = raw_service(cache={"replace": True, "storageClassName": "other"}, resources={"cpu": "1"})
        replacing["metadata"] |= {"generation": 3}
        cluster.server.put(replacing)
        await cluster.settle()
        asked = used(cluster)
    rights = granted((*CLUSTER_SCOPED, *NAMESPACED))
    assert asked - rights == set()
    assert rights - asked - NOT_SEEN_HERE == set()


def test_o10_secrets_are_read_by_name_only() -> None:
    secrets = {verb for group, plural, verb in granted(NAMESPACED) if (group, plural) == ("", "secrets")}
    assert secrets == {"get", "create", "delete"}
    assert not {rule for rule in (*CLUSTER_SCOPED, *NAMESPACED) if "*" in (*rule.verbs, *rule.resources)}


def test_a_rule_as_kubernetes_writes_it() -> None:
    assert NAMESPACED[0].manifest() == {
        "apiGroups": ["serving.noctaya.io"],
        "resources": ["llmservices"],
        "verbs": ["get", "list", "watch"],
    }
