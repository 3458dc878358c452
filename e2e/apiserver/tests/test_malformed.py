"""O1: objects that no schema of today would let in, stored before it, beside healthy ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from noctaya_apiserver import ControlPlane, path_of, wait_for
from noctaya_apiserver.client import ApiClient, Object
from noctaya_apiserver.noctaya import noctaya_crds
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import API, World, condition_of, runtime

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GOOD = {"model": {"source": {"uri": "hf://org/model"}}, "runtime": {"name": "engine"}}
ODD: dict[str, Any] = {
    "no-runtime": {"spec": {"model": GOOD["model"]}},
    "no-model": {"spec": {"runtime": GOOD["runtime"]}},
    "empty-spec": {"spec": {}},
    "no-spec": {},
    "text-spec": {"spec": "later"},
    "odd-quantity": {"spec": {**GOOD, "resources": {"cpu": "lots"}}},
    "odd-duration": {"spec": {**GOOD, "scaling": {"scaleDownStabilization": "soon"}}},
    "odd-strategy": {"spec": {**GOOD, "cache": {"strategy": "Cloud"}}},
    "min-over-max": {"spec": {**GOOD, "scaling": {"min": 5, "max": 1}}},
    "qwen2.5-7b": {"spec": GOOD},
    f"long-{'x' * 60}": {"spec": GOOD},
}
UNWRITABLE: dict[str, Any] = {
    "list-model": {"spec": {**GOOD, "model": ["hf://org/model"]}},
    "odd-number": {"spec": {**GOOD, "scaling": {"max": "many"}}},
}
"""The server can't even evaluate its rules on these, and so refuses every status: an Event has to do."""
HEALTHY = ("first", "second", "with-odd-status")
CREATED_LATE = "third"

Start = Callable[..., OperatorProcess]


@pytest.fixture
def lenient(workshop: ControlPlane) -> Iterator[ApiClient]:
    """The CRDs take anything, until `restore` puts the real ones back, and afterwards in any case."""
    api = workshop.client()
    for crd in noctaya_crds():
        replace_crd(api, open_schema(crd))
    yield api
    restore(api)


def restore(api: ApiClient) -> None:
    for crd in noctaya_crds():
        replace_crd(api, crd)


def open_schema(crd: Object) -> Object:
    opened = copy.deepcopy(crd)
    opened["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return opened


def replace_crd(api: ApiClient, crd: Object) -> None:
    """Replace a CRD and wait until the API server judges by it."""
    path = f"{CRDS}/{crd['metadata']['name']}"
    live = api.get(path)
    api.replace(
        {**crd, "metadata": {**crd["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
    )
    strict = "properties" in crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    wait_for(lambda: judges(api, crd, strict=strict), what=f"the schema of {crd['metadata']['name']}")


def judges(api: ApiClient, crd: Object, *, strict: bool) -> bool:
    probe = {"apiVersion": API, "kind": crd["spec"]["names"]["kind"], "metadata": {"name": "probe"}}
    try:
        api.create({**probe, "metadata": {"name": "probe", "namespace": "default"}, "spec": {}}, dryRun="All")
    except Exception as error:
        return strict and "422" in str(error)
    return not strict


@pytest.fixture
def odd_runtime(bench: World) -> Iterator[Object]:
    """A runtime that no operator understands; each that starts tries to say so, in other tests as well."""
    odd = {**runtime(f"odd-{bench.namespace}"), "spec": {"vendor": 5}}
    yield odd
    bench.api.delete(path_of(odd))


def test_o1_odd_objects_get_their_own_condition_and_healthy_ones_go_on(
    lenient: ApiClient, bench: World, start_operator: Start, odd_runtime: Object
) -> None:
    for name, body in {**ODD, **UNWRITABLE}.items():
        lenient.create({**bench.service(name), "spec": None, **body})
    for name in HEALTHY:
        lenient.create(bench.service(name))
    odd_status = {"phase": 7, "conditions": "none", "replicas": "x"}
    lenient.merge(f"{bench.path('with-odd-status')}/status", {"status": odd_status})
    lenient.create(odd_runtime)
    restore(lenient)

    operator = start_operator()
    for name in HEALTHY:
        bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name)
    bench.create(CREATED_LATE)
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", CREATED_LATE)
    told = {name: reason_of(bench, name) for name in ODD}
    assert told == dict.fromkeys(ODD, "InvalidSpec")
    for name in UNWRITABLE:
        wait_for(partial(warned, bench, name), what=f"a Warning about {name}")
    owners = {each["metadata"]["ownerReferences"][0]["name"] for each in bench.objects().values()}
    assert owners == {*HEALTHY, CREATED_LATE}
    assert operator.child.running
    assert operator.metric("workqueue_depth") == 0


def warned(world: World, name: str) -> bool:
    return [(each["type"], each["reason"]) for each in world.events(name)] == [("Warning", "InvalidSpec")]


def reason_of(world: World, name: str) -> str:
    """Why an odd service is degraded, once it is told; blank when it never is."""
    found = ""

    def look() -> bool:
        nonlocal found
        found = condition_of(world.status(name), "Degraded")[1]
        return bool(found)

    try:
        wait_for(look, within=10.0)
    except AssertionError:
        return ""
    return found
