"""A backend of the v0.4 alpha is taken over without restarting its Pods."""

from __future__ import annotations

from copy import deepcopy

import alpha
import pytest
from noctaya_operator.adoption import keep_running_template
from noctaya_operator.kube.objects import Object
from noctaya_operator.pod_defaults import with_defaults
from noctaya_operator.render import backend as renderer
from samples import FROM_ALPHA, backend, plan, pod_of, raw_service, runtime, service

OWNER = raw_service()


def test_the_selector_is_the_alphas() -> None:
    assert backend(plan())["spec"]["selector"] == alpha.backend(OWNER)["spec"]["selector"]


def test_the_alphas_template_is_kept() -> None:
    desired, live = backend(plan()), alpha.backend(OWNER)
    kept = keep_running_template(desired, live)
    assert with_defaults(kept["spec"]["template"]) == with_defaults(live["spec"]["template"])
    # What doesn't restart Pods is applied at once.
    assert kept["spec"]["strategy"] == desired["spec"]["strategy"]
    assert kept["spec"]["progressDeadlineSeconds"] == desired["spec"]["progressDeadlineSeconds"]
    assert "replicas" not in kept["spec"]


def test_nothing_given_is_changed() -> None:
    desired, live = backend(plan()), alpha.backend(OWNER)
    before = deepcopy((desired, live))
    keep_running_template(desired, live)
    assert (desired, live) == before


def test_the_alphas_waiting_script_is_kept() -> None:
    desired = backend(plan(service(cache={"strategy": "SharedPVC", "prewarm": True}), precedent=FROM_ALPHA))
    live = alpha.backend(OWNER, shared_and_prewarmed=True)
    kept = pod_of(keep_running_template(desired, live))
    assert kept["initContainers"] == pod_of(live)["initContainers"]


def test_replicas_that_share_a_claim_are_not_restarted_for_their_affinity() -> None:
    desired = backend(plan(service(scaling={"max": 2})))
    assert "affinity" in pod_of(desired)
    assert "affinity" not in pod_of(keep_running_template(desired, alpha.backend(OWNER)))


def test_metadata_of_others_does_not_matter() -> None:
    live = alpha.backend(OWNER)
    template = live["spec"]["template"]["metadata"]
    template["annotations"] = {"kubectl.kubernetes.io/restartedAt": "2026-11-01T00:00:00Z"}
    template["labels"]["team"] = "blue"
    assert "securityContext" not in pod_of(keep_running_template(backend(plan()), live))


def test_quantities_are_compared_by_amount() -> None:
    resources = {"cpu": "8", "memory": "32Gi"}
    live = alpha.backend(OWNER)
    pod_of(live)["containers"][0]["resources"] = {
        "requests": {"cpu": "8000m", "memory": "32768Mi", "nvidia.com/gpu": "1"},
        "limits": {"memory": "32768Mi", "nvidia.com/gpu": "1"},
    }
    desired = backend(plan(service(resources=resources)))
    assert "securityContext" not in pod_of(keep_running_template(desired, live))


def changed_image(live: Object) -> None:
    pod_of(live)["containers"][0]["image"] = "example.com/engine:0"


def removed_env(live: Object) -> None:
    pod_of(live)["containers"][0]["env"].append({"name": "OLD", "value": "1"})


def removed_limit(live: Object) -> None:
    pod_of(live)["containers"][0]["resources"]["limits"]["memory"] = "1Gi"


def removed_queue(live: Object) -> None:
    live["spec"]["template"]["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "q"}


def other_runtime(live: Object) -> None:
    live["spec"]["template"]["metadata"]["labels"]["serving.noctaya.io/runtime"] = "former"


def other_directory(live: Object) -> None:
    pod_of(live)["volumes"][1] = {"name": "model-cache", "hostPath": {"path": "/x", "type": ""}}


@pytest.mark.parametrize(
    "change", [changed_image, removed_env, removed_limit, removed_queue, other_runtime, other_directory]
)
def test_a_change_that_restarts_pods_anyway_brings_everything(change: object) -> None:
    live = alpha.backend(OWNER)
    assert callable(change)
    change(live)
    desired = backend(plan())
    assert keep_running_template(desired, live) is desired


def test_at_zero_replicas_nothing_would_restart() -> None:
    desired, live = backend(plan()), alpha.backend(OWNER)
    live["spec"]["replicas"] = 0
    live["status"] = {"replicas": 1}
    assert keep_running_template(desired, live) is not desired
    live["status"] = {}
    assert keep_running_template(desired, live) is desired


def test_our_own_deployment_is_not_kept_back() -> None:
    planned = plan()
    desired = renderer.render_backend(planned)
    ours = deepcopy(desired)
    ours["spec"]["template"]["spec"] |= {"dnsPolicy": "ClusterFirst"}
    assert keep_running_template(desired, ours) is desired


@pytest.mark.parametrize("live", [None, {}, {"spec": {}}, {"spec": {"template": {}}}])
def test_without_a_deployment_there_is_nothing_to_keep(live: Object | None) -> None:
    desired = backend(plan())
    assert keep_running_template(desired, live) is desired


def test_a_runtime_without_a_device_is_taken_over_too() -> None:
    live = alpha.backend(OWNER)
    pod_of(live)["containers"][0]["resources"] = {}
    desired = backend(plan(on=runtime(vendor="cpu")))
    assert "securityContext" not in pod_of(keep_running_template(desired, live))
