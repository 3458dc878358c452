from collections import Counter

import pytest
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_apiserver import Request
from noctaya_bench.cluster.convergence import ReconcileProbe, converged, runs_image
from noctaya_bench.cluster.operator_process import read_progress
from noctaya_bench.cluster.population import CHANGED_RUNTIME, OTHER_RUNTIME, members, runtime, service
from noctaya_bench.cluster.requests import Requests, count_requests, most
from noctaya_bench.cluster.stand_ins import autoscaler, running
from noctaya_bench.measures.o1_operator_scale import COLUMNS, Stage, described

METRICS = """\
# TYPE controller_runtime_reconcile counter
controller_runtime_reconcile_total{controller="llmservice",result="success"} 40.0
controller_runtime_reconcile_total{controller="llmservice",result="error"} 2.0
controller_runtime_reconcile_total{controller="inferenceruntime",result="success"} 9.0
# TYPE controller_runtime_reconcile_errors counter
controller_runtime_reconcile_errors_total{controller="llmservice"} 2.0
# TYPE controller_runtime_active_workers gauge
controller_runtime_active_workers{controller="llmservice"} 1.0
# TYPE workqueue_depth gauge
workqueue_depth{controller="llmservice",name="llmservice"} 3.0
workqueue_depth{controller="inferenceruntime",name="inferenceruntime"} 5.0
"""


def asked(verb, resource, *, user="operator", subresource="", code=200):
    return Request(
        user=user,
        verb=verb,
        resource=resource,
        subresource=subresource,
        namespace="a",
        name="b",
        code=code,
        at="",
    )


def test_requests_of_the_operator_are_sorted_into_writes_reads_watches_and_the_lease():
    found = count_requests(
        [
            asked("patch", "deployments"),
            asked("update", "llmservices", subresource="status"),
            asked("get", "secrets", code=404),
            asked("list", "pods"),
            asked("watch", "pods"),
            asked("update", "leases"),
            asked("create", "pods", user="controllers"),
        ],
        user="operator",
    )
    assert found.writes == {"patch deployments": 1, "update llmservices/status": 1}
    assert found.reads == {"get secrets": 1, "list pods": 1}
    assert (found.written, found.read, found.watches, found.lease) == (2, 2, 1, 1)
    assert found.besides_watches == 5
    assert found.refused == {"404 get secrets": 1}


def test_counts_are_given_per_service_without_what_is_too_small():
    counts = Counter({"patch services": 400, "create deployments": 100, "update x": 1})
    assert most(counts, 100) == "patch services 4.00, create deployments 1.00, update x 0.01"
    assert most(Counter({"update x": 1}), 1000) == "none"


def test_progress_is_that_of_services_only():
    progress = read_progress(METRICS)
    assert (progress.reconciles, progress.waiting, progress.failures) == (42, 4, 2)


def test_half_of_the_services_use_the_runtime_that_changes_in_every_namespace():
    population = members(1000)
    assert len({(member.namespace, member.name) for member in population}) == 1000
    users = [member for member in population if member.runtime == CHANGED_RUNTIME]
    assert len(users) == 500
    assert {member.namespace for member in users} == {member.namespace for member in population}


def test_services_and_runtimes_of_the_bench_are_valid():
    for member in members(20)[::10]:
        assert LLMService.model_validate(service(member)).spec.runtime.name == member.runtime
    assert InferenceRuntime.model_validate(runtime("x", image="y")).spec.container.image == "y"


def condition(kind, status):
    return {"type": kind, "status": status}


@pytest.mark.parametrize(
    ("phase", "seen", "attached", "expected"),
    [
        ("ScaledToZero", 2, "True", True),
        ("ScaledToZero", 1, "True", False),
        ("ScaledToZero", 2, "False", False),
        ("Degraded", 2, "True", False),
    ],
)
def test_a_service_has_converged_when_its_newest_generation_is_attached_at_zero(
    phase, seen, attached, expected
):
    conditions = [condition("Ready", "False"), condition("AutoscalingReady", attached)]
    status = {"phase": phase, "observedGeneration": seen, "conditions": conditions}
    assert converged({"metadata": {"generation": 2}, "status": status}) is expected


def test_a_service_without_status_has_not_converged():
    assert not converged({"metadata": {"generation": 1}})


def test_a_backend_is_recognized_by_its_image():
    deployment = {"spec": {"template": {"spec": {"containers": [{"image": "a"}, {"image": "b"}]}}}}
    assert runs_image("b")(deployment)
    assert not runs_image("c")(deployment)


def test_the_probe_refuses_a_service_that_the_change_concerns():
    (member, *_) = members(1)
    with pytest.raises(ValueError, match="not unrelated"):
        ReconcileProbe(None, member)
    assert member.runtime != OTHER_RUNTIME


def test_pods_that_run_have_addresses_of_their_own_and_are_ready():
    pod = {"spec": {"containers": [{"name": "gateway", "image": "x"}]}}
    addresses = {running(pod, number)["podIP"] for number in range(1, 3000)}
    assert len(addresses) == 2999
    assert all(each["status"] == "True" for each in running(pod, 1)["conditions"])


def test_the_autoscaler_stands_for_the_scaled_object_it_is_made_of():
    scaled_object = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "chat", "uid": "u"},
        "spec": {"scaleTargetRef": {"name": "chat"}, "maxReplicaCount": 3},
    }
    made = autoscaler(scaled_object)
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert made["spec"]["maxReplicas"] == 3


def test_a_stage_is_a_row_of_the_table():
    requests = Requests(writes=Counter({"patch services": 1200}), reads=Counter({"list pods": 1}), watches=12)
    row = Stage("restart", 2.04, requests, 1.5, 90 * 2**20, "why").row()
    assert row == ("restart", "2.0", "1,200", "1", "12", "1.5", "90", "why")
    assert len(row) == len(COLUMNS)


def test_latencies_are_told_by_median_and_maximum():
    assert described([0.1, 0.2, 0.9]) == "p50 200 ms, max 900 ms"
