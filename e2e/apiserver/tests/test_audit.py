"""O10: what the operator called in its whole life, out of the API server's audit log, against `rbac.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from noctaya_apiserver import ControlPlane, Refused, Request, wait_for
from noctaya_apiserver.alpha import MANAGER, alpha_objects, alpha_runtime, alpha_service
from noctaya_apiserver.client import Object
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.noctaya import OPERATOR, new_namespace, noctaya_plane
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.rights import operator_rights
from noctaya_apiserver.users import User
from noctaya_apiserver.world import World, runtime, stand_ins
from noctaya_operator.rbac import CLUSTER_SCOPED, LEADER_ELECTION, NAMESPACED, SELDOM, Right, Rule

pytestmark = pytest.mark.timeout(900)
"""A whole life, with the waits of a busy machine."""

DIGEST = "0123456789abcdef" * 4
SHAPES: dict[str, dict[str, Any]] = {
    "claim": {"cache": {"prewarm": True, "size": "1Gi"}, "scaling": {"max": 2}},
    "kept": {"cache": {"strategy": "SharedPVC", "retain": True, "prewarm": True}},
    "node": {"cache": {"strategy": "HostPath"}},
    "none": {"cache": {"strategy": "None"}},
    "staged": {"model": {"source": {"uri": "pvc://models/tiny"}}, "cache": {"strategy": "None"}},
    "bucket": {"model": {"source": {"uri": "s3://bucket/model", "secretRef": {"name": "s3"}}}},
    "artifact": {
        "model": {"source": {"uri": f"oci://registry/model@sha256:{DIGEST}", "secretRef": {"name": "oci"}}}
    },
    "scope": {"model": {"source": {"uri": "modelscope://org/model"}}, "cache": {"prewarm": True}},
    "keys": {"endpoint": {"authentication": {"secretRef": {"name": "keys", "key": "keys"}}}},
}
"""Every kind of cache and of source."""
WITHOUT_FINALIZERS = "operator-without-finalizers"


def granted(rules: Iterable[Rule]) -> set[Right]:
    return {
        (rule.group, resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs
    }


def used(requests: Iterable[Request]) -> set[Right]:
    """Rights that requests needed. A patch that made its object needed the right to create it too."""
    rights = set()
    for each in requests:
        plural = f"{each.resource}/{each.subresource}" if each.subresource else each.resource
        rights.add((each.group, plural, each.verb))
        if each.verb == "patch" and each.code == 201:
            rights.add((each.group, plural, "create"))
    return rights


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: its log shall hold one life and nothing else."""
    plane = noctaya_plane(tmp_path_factory.mktemp("audited"), users=[User(WITHOUT_FINALIZERS)])
    with plane, stand_ins(plane):
        yield plane


@pytest.fixture(scope="module")
def life(audited: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    """Everything the operator asked for from its first start to the end of its last service."""
    api = audited.client()
    world, former, strict = (World(api, new_namespace(api)) for _ in range(3))
    api.apply(runtime())
    api.apply(runtime("broken", image="example.com/missing:1"))
    left_by_the_alpha(former)
    folder = tmp_path_factory.mktemp("operator")
    with ExitStack() as last:
        with running(audited, folder, gateways=2):
            made(world, former)
            a_doomed_activation(world)
            a_download_that_admission_denies(strict)
            changed(world)
            last.enter_context(running(audited, folder, gateways=1))  # it stands by until the first has ended
        wait_for(lambda: world.get("apps/v1/deployments", "claim-scaler") is None, what="one gateway alone")
        wait_for(lambda: world.get("v1/secrets", "claim-demand-auth") is None, what="no token any more")
        deleted(world)
    return [each for each in audited.requests() if each.user == OPERATOR]


@contextmanager
def running(plane: ControlPlane, folder: Path, *, gateways: int) -> Iterator[None]:
    """An operator for the whole cluster, with a Lease."""
    flags = ("--leader-elect", "--leader-election-namespace=noctaya-system", f"--gateway-replicas={gateways}")
    operator = OperatorProcess(plane.kubeconfig(OPERATOR), folder, *flags, name=f"operator-{gateways}")
    operator.start()
    try:
        yield
    finally:
        operator.stop()


def left_by_the_alpha(world: World) -> None:
    world.api.apply(alpha_runtime())
    for obj in alpha_objects(world.api.create(alpha_service(world.namespace))):
        if obj["kind"] in {"Secret", "PersistentVolumeClaim", "Job"}:
            world.api.create(obj, fieldManager="manager")
        else:
            world.api.apply(obj, manager=MANAGER)


def made(world: World, former: World) -> None:
    for name, spec in SHAPES.items():
        world.create(name, **spec)
    for name in SHAPES:
        world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name)
    for name in ("claim", "kept"):
        world.await_phase("ScaledToZero", name)
    former.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")


def a_doomed_activation(world: World) -> None:
    world.create("doomed", runtime={"name": "broken"})
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", "doomed")
    for _ in range(2):  # the second raises the count of the first one's Event
        scale(world.api, namespace=world.namespace, deployment="doomed", replicas=1)
        world.await_condition("Degraded", "True", "ImagePullFailed", "doomed")
        scale(world.api, namespace=world.namespace, deployment="doomed", replicas=0)
        world.await_phase("ScaledToZero", "doomed")


def a_download_that_admission_denies(world: World) -> None:
    label = {"pod-security.kubernetes.io/enforce": "baseline"}
    world.api.merge(f"/api/v1/namespaces/{world.namespace}", {"metadata": {"labels": label}})
    world.create(cache={"strategy": "HostPath", "prewarm": True})
    world.await_status(lambda status: "Pod Security" in status.get("prewarm", {}).get("message", ""))


def changed(world: World) -> None:
    scale(world.api, namespace=world.namespace, deployment="claim", replicas=1)
    world.await_phase("Ready", "claim")
    scale(world.api, namespace=world.namespace, deployment="claim", replicas=0)
    world.await_phase("ScaledToZero", "claim")
    world.change("kept", cache={"retain": False})
    claims = "v1/persistentvolumeclaims"
    wait_for(
        lambda: world.await_object(claims, "kept-cache")["metadata"].get("ownerReferences"),
        what="a claim that goes with its service",
    )
    before = world.await_object(claims, "claim-cache")["metadata"]["uid"]
    world.change("claim", cache={"replace": True, "storageClassName": "other"})
    wait_for(lambda: uid(world.get(claims, "claim-cache")) not in {None, before}, what="another claim")


def uid(obj: Object | None) -> str | None:
    return str(obj["metadata"]["uid"]) if obj else None


def deleted(world: World) -> None:
    for name in (*SHAPES, "doomed"):
        world.delete(name)
    wait_for(lambda: not world.objects(), what="everything gone")


def test_o10_nothing_the_operator_asked_for_was_refused(life: list[Request]) -> None:
    assert not {right for each in life if each.code == 403 for right in used([each])}


def test_o10_every_call_is_covered_by_a_rule(life: list[Request]) -> None:
    assert used(life) - granted((*CLUSTER_SCOPED, *NAMESPACED, *LEADER_ELECTION)) == set()


def test_o10_every_right_was_used_or_says_when_it_is(life: list[Request]) -> None:
    rights = granted((*CLUSTER_SCOPED, *NAMESPACED, *LEADER_ELECTION))
    assert rights - used(life) - SELDOM.keys() == set()


def test_o10_secrets_were_read_by_name_and_written_where_its_services_are(life: list[Request]) -> None:
    secrets = [each for each in life if each.resource == "secrets"]
    assert secrets
    assert all(each.name or each.verb == "create" for each in secrets), secrets
    assert {each.verb for each in secrets} == {"get", "create", "delete"}


def test_o10_without_the_right_to_finalizers_no_object_could_be_owned(
    audited: ControlPlane, tmp_path: Path
) -> None:
    admin = audited.client()
    admin.install(
        operator_rights(
            WITHOUT_FINALIZERS, without=frozenset({("serving.noctaya.io", "llmservices/finalizers")})
        )
    )
    world = World(admin, new_namespace(admin))
    service = world.create("owned", cache={"strategy": "None"}, runtime={"name": "nowhere"})
    obj: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "owned",
            "namespace": world.namespace,
            "ownerReferences": [
                {
                    "apiVersion": service["apiVersion"],
                    "kind": "LLMService",
                    "name": "owned",
                    "uid": service["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    with pytest.raises(Refused, match="blockOwnerDeletion"):
        audited.client(WITHOUT_FINALIZERS).create(obj, dryRun="All")
    assert audited.client(OPERATOR).create(obj, dryRun="All")["metadata"]["uid"]
