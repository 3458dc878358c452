"""Pod Security: `restricted` for what is ours, `baseline` for engines wherever the node isn't needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from noctaya_api.conditions import StepReason
from noctaya_api.manifests import load_manifests
from noctaya_api.v1alpha1 import InferenceRuntime
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import PlanError
from samples import OCI, engine, objects, plan, pod_of, runtime, service

EXAMPLES = Path(__file__).parents[4] / "examples"
OURS = ("Deployment/chat-gateway", "Deployment/chat-scaler", "Job/chat-prewarm")
TLS = {"externalScaler": {"tls": {"serverSecretName": "tls", "authenticationRef": {"name": "mtls"}}}}
KEYS = {"authentication": {"secretRef": {"name": "keys", "key": "k"}}}
RESTRICTED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"} | {
    "projected",
    "secret",
}


def violations(pod: Object) -> Iterator[str]:
    """What the `restricted` level has against a Pod, after its definition in Kubernetes."""
    context = pod.get("securityContext", {})
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "seccomp"
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield field
    for volume in pod.get("volumes", ()):
        if not RESTRICTED_VOLUMES & volume.keys():
            yield f"volume {volume['name']}"
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        own = container.get("securityContext", {})
        effective = {**context, **own}
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{container['name']} may escalate"
        if own.get("capabilities", {}).get("drop") != ["ALL"] or own["capabilities"].get("add"):
            yield f"{container['name']} has capabilities"
        if effective.get("runAsNonRoot") is not True or effective.get("runAsUser") == 0:
            yield f"{container['name']} may be root"


@pytest.mark.parametrize("uri", ["hf://org/model", OCI])
def test_o10_r16_pods_of_ours_are_restricted(uri: str) -> None:
    given = service(uri=uri, cache={"prewarm": True}, scaling=TLS, endpoint=KEYS)
    found = objects(plan(given, gateways=2))
    for name in OURS:
        assert list(violations(pod_of(found[name]))) == [], name


@pytest.mark.parametrize("name", OURS)
def test_r16_pods_of_ours_can_not_write_their_image(name: str) -> None:
    found = objects(plan(service(uri=OCI), gateways=2))
    pod = pod_of(found[name])
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_r16_no_pod_has_a_service_account_token() -> None:
    for obj in objects(plan(service(uri=OCI), gateways=2)).values():
        if "template" in obj.get("spec", {}):
            assert pod_of(obj)["automountServiceAccountToken"] is False


def test_o10_an_engine_is_only_denied_what_no_engine_needs() -> None:
    pod = pod_of(objects(plan())["Deployment/chat"])
    assert list(violations(pod)) == ["serving has capabilities", "serving may be root"]


def test_o10_the_container_that_waits_in_an_engines_pod_is_restricted() -> None:
    pod = pod_of(objects(plan(service(uri=OCI)))["Deployment/chat"])
    assert [each for each in violations(pod) if each.startswith("wait-for-prewarm")] == []


def test_o10_only_a_directory_of_the_node_is_written_as_root_and_without_capabilities() -> None:
    found = objects(plan(service(cache={"strategy": "HostPath", "prewarm": True})))
    pod = pod_of(found["Job/chat-prewarm"])
    assert list(violations(pod)) == ["volume model-cache", "prewarm may be root"]


@pytest.mark.parametrize("vendor", ["nvidia", "amd", "intel", "cpu"])
def test_o10_engines_need_nothing_of_the_node(vendor: str) -> None:
    pod = pod_of(objects(plan(on=runtime(vendor=vendor)))["Deployment/chat"])
    assert [each for each in violations(pod) if each.startswith(("volume", "host"))] == []


def test_secrets_are_readable_by_the_user_and_nobody_else() -> None:
    found = objects(plan(service(uri=OCI, scaling=TLS, endpoint=KEYS), gateways=2))
    for name in OURS:
        modes = {
            volume["secret"]["defaultMode"] for volume in pod_of(found[name])["volumes"] if "secret" in volume
        }
        assert modes <= {0o440}


def held_to(level: str = "restricted", **more: int) -> InferenceRuntime:
    asked: Object = {"level": level, **more}
    return runtime(podSecurity=asked)


@pytest.mark.parametrize("uri", ["hf://org/model", OCI, "pvc://models/tiny"])
@pytest.mark.parametrize("user", [{}, {"runAsUser": 1000}])
def test_o10_a_service_on_a_restricted_runtime_is_restricted_as_a_whole(
    uri: str, user: dict[str, int]
) -> None:
    given = service(uri=uri, cache={"prewarm": True}, scaling=TLS, endpoint=KEYS)
    found = objects(plan(given, on=held_to(**user), gateways=2))
    pods = {name: pod_of(each) for name, each in found.items() if "template" in each.get("spec", {})}
    assert {name: list(violations(pod)) for name, pod in pods.items()} == {name: [] for name in pods}
    assert "Deployment/chat" in pods


def test_o10_an_engine_runs_as_whom_its_runtime_says_and_the_cache_is_its_groups() -> None:
    found = objects(
        plan(service(cache={"prewarm": True}), on=held_to(runAsUser=1000, runAsGroup=0, fsGroup=2000))
    )
    context = pod_of(found["Deployment/chat"])["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (1000, 0, 2000)
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"
    job = pod_of(found["Job/chat-prewarm"])["securityContext"]
    assert (job["runAsUser"], job["fsGroup"]) == (65532, 2000)


def test_o10_the_user_of_an_image_is_kept_unless_the_runtime_names_another() -> None:
    planned = plan(on=held_to())
    context = pod_of(objects(planned)["Deployment/chat"])["securityContext"]
    assert "runAsUser" not in context
    assert context["fsGroup"] == 65532
    assert {"HOME", "USER"}.isdisjoint(entry["name"] for entry in engine(planned).get("env", ()))


def test_o10_the_level_baseline_denies_no_more_than_no_level_at_all() -> None:
    pod = pod_of(objects(plan(on=held_to("baseline", runAsUser=0)))["Deployment/chat"])
    assert list(violations(pod)) == ["serving has capabilities", "serving may be root"]
    assert pod["securityContext"]["runAsUser"] == 0


def test_a_user_that_the_image_may_not_know_has_a_home_and_a_name_unless_the_runtime_says_so() -> None:
    env = {entry["name"]: entry["value"] for entry in engine(plan(on=held_to(runAsUser=1000)))["env"]}
    assert (env["HOME"], env["USER"]) == ("/tmp", "engine")
    own = [{"name": "HOME", "value": "/home/vllm"}]
    on = runtime(podSecurity={"runAsUser": 1000}, container={"env": own})
    env = {entry["name"]: entry["value"] for entry in engine(plan(on=on))["env"]}
    assert env["HOME"] == "/home/vllm"


def test_o10_a_directory_of_the_node_is_refused_before_anything_is_written() -> None:
    with pytest.raises(PlanError, match="use NodeLocalPVC, SharedPVC or None") as refused:
        plan(service(cache={"strategy": "HostPath"}), on=held_to())
    assert refused.value.reason is StepReason.CACHE
    assert plan(service(cache={"strategy": "HostPath"}), on=held_to("baseline")).cache is not None


def test_o10_the_example_for_cpus_is_restricted_as_a_whole() -> None:
    found = load_manifests([EXAMPLES / "quickstart"])
    for name, each in objects(plan(found.services[0], on=found.runtimes[0], gateways=2)).items():
        if "template" in each.get("spec", {}):
            assert list(violations(pod_of(each))) == [], name
