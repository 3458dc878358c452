"""Pod Security: `restricted` for what is ours, `baseline` for engines wherever the node isn't needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from noctaya_operator.kube.objects import Object
from samples import OCI, objects, plan, pod_of, runtime, service

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
