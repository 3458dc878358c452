"""The observation of a backend (row L12, O7): each reason, their precedence, and ties."""

from __future__ import annotations

from typing import Any

import pytest
from cluster import pod, running, waiting
from noctaya_api.conditions import ObservationReason as Reason
from noctaya_operator.diagnose import BackendState, active, diagnose_backend, diagnose_pod
from noctaya_operator.kube.objects import Object
from noctaya_operator.object_names import ObjectNames

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
}
OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}


def init(state: Object, **more: Any) -> Object:
    return {"initContainerStatuses": [{"name": "wait-for-prewarm", "state": state, **more}]}


TABLE: list[tuple[Object, Reason]] = [
    (waiting("ErrImagePull"), Reason.IMAGE_PULL_FAILED),
    (waiting("ImagePullBackOff"), Reason.IMAGE_PULL_FAILED),
    (waiting("InvalidImageName"), Reason.IMAGE_PULL_FAILED),
    (waiting("RegistryUnavailable"), Reason.IMAGE_PULL_FAILED),
    (waiting("CrashLoopBackOff", lastState=OOM), Reason.OOM_KILLED),
    (running(lastState=OOM), Reason.OOM_KILLED),
    (waiting("CrashLoopBackOff"), Reason.CRASH_LOOP_BACK_OFF),
    (waiting("CrashLoopBackOff", restartCount=7), Reason.CRASH_LOOP_BACK_OFF),
    (waiting("CreateContainerConfigError"), Reason.CRASH_LOOP_BACK_OFF),
    (running(restartCount=2), Reason.CONTAINER_RESTARTING),
    (running(restartCount=1), Reason.MODEL_LOADING),
    ({"conditions": [UNSCHEDULABLE]}, Reason.SCHEDULING_DELAYED),
    (running(), Reason.MODEL_LOADING),
    (waiting("ContainerCreating"), Reason.STARTING),
    (waiting("ErrImagePull", container="sidecar"), Reason.STARTING),
    (running(ready=True), Reason.STARTING),
    (running(ready=True, restartCount=9, lastState=OOM), Reason.STARTING),
    ({}, Reason.STARTING),
    (init({"waiting": {"reason": "ImagePullBackOff"}}), Reason.IMAGE_PULL_FAILED),
    (init({"waiting": {"reason": "CrashLoopBackOff"}}), Reason.INIT_CONTAINER_FAILED),
    (init({"waiting": {"reason": "CreateContainerConfigError"}}), Reason.INIT_CONTAINER_FAILED),
    (init({"running": {}}), Reason.STARTING),
    (
        init({"terminated": {"exitCode": 1}}, restartCount=2),
        Reason.INIT_CONTAINER_FAILED,
    ),
]


@pytest.mark.parametrize(("status", "reason"), TABLE)
def test_l12_a_pod_is_seen_as_the_table_says(status: Object, reason: Reason) -> None:
    assert diagnose_pod(pod(status)).reason is reason


def state(*pods: Object, deployment: Object | None = None, **more: Any) -> BackendState:
    given: dict[str, Any] = {"claim": None, "storage_classes": {"fast": False}, **more}
    return BackendState(
        names=ObjectNames(service="chat", namespace="team"),
        deployment=deployment or {"spec": {"replicas": len(pods)}, "status": {"replicas": len(pods)}},
        pods=pods,
        **given,
    )


def test_l12_the_most_urgent_reason_over_all_pods_counts_and_ties_go_by_message() -> None:
    pods = [
        pod(running(), name="a"),
        pod(waiting("CrashLoopBackOff"), name="c"),
        pod(waiting("CrashLoopBackOff"), name="b"),
    ]
    found = diagnose_backend(state(*pods))
    assert found.reason is Reason.CRASH_LOOP_BACK_OFF
    assert "Pod b" in found.message
    assert diagnose_backend(state(*reversed(pods))) == found


def test_l12_no_pod_is_activating() -> None:
    assert diagnose_backend(state()).reason is Reason.ACTIVATING


def test_l12_a_missed_progress_deadline_overrides_and_tells_the_cause() -> None:
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    deployment: Object = {"spec": {"replicas": 1}, "status": {"replicas": 1, "conditions": [late]}}
    found = diagnose_backend(state(pod(waiting("ErrImagePull")), deployment=deployment))
    assert found.reason is Reason.PROGRESS_DEADLINE_EXCEEDED
    assert "can't be pulled" in found.message
    deployment["status"]["replicas"] = 0
    assert diagnose_backend(state(deployment=deployment)).reason is Reason.ACTIVATING


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("exceeded quota: small", Reason.QUOTA_EXCEEDED),
        ('admission webhook "policy" denied the request', Reason.ADMISSION_DENIED),
    ],
)
def test_o7_pods_that_can_not_be_created_are_seen(message: str, reason: Reason) -> None:
    deployment = refused(f'pods "chat-5d8-x7" is forbidden: {message}')
    found = diagnose_backend(state(deployment=deployment))
    assert (found.reason, found.hard) == (reason, True)
    assert message in found.message
    deployment["spec"]["replicas"] = 0
    assert not diagnose_backend(state(deployment=deployment)).hard


def refused(message: str) -> Object:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    return {"spec": {"replicas": 1}, "status": {"conditions": [failure]}}


PRIVILEGES = 'allowPrivilegeEscalation != false (container "serving" must set it)'
DIRECTORY = 'restricted volume types (volume "model-cache" uses restricted volume type "hostPath")'


@pytest.mark.parametrize(
    ("level", "what", "remedy"),
    [
        ("restricted", PRIVILEGES, "set podSecurity.level of the InferenceRuntime to restricted"),
        ("restricted", DIRECTORY, "set cache.strategy to NodeLocalPVC"),
        ("baseline", 'hostPath volumes (volume "ascend-driver")', "a namespace that enforces privileged"),
    ],
)
def test_o10_a_namespace_whose_pod_security_refuses_a_pod_is_told_with_a_remedy(
    level: str, what: str, remedy: str
) -> None:
    message = f'pods "chat-5d8-x7" is forbidden: violates PodSecurity "{level}:v1.34": {what}'
    found = diagnose_backend(state(deployment=refused(message)))
    assert (found.reason, found.hard) == (Reason.POD_SECURITY_DENIED, True)
    assert f"Pod Security {level!r}, which forbids {what}" in found.message
    assert remedy in found.message


def test_o9_the_name_of_each_pod_that_is_refused_is_not_news() -> None:
    for rest in ("exceeded quota: small", f'violates PodSecurity "restricted:latest": {PRIVILEGES}', "no"):
        told = {
            diagnose_backend(state(deployment=refused(f'pods "chat-5d8-{end}" is forbidden: {rest}'))).message
            for end in ("aaaaa", "bbbbb")
        }
        assert len(told) == 1, told


@pytest.mark.parametrize(
    "said",
    [
        'container has runAsNonRoot and image will run as root (pod: "chat-1_team(1)", container: serving)',
        "container has runAsNonRoot and image has non-numeric user (vllm), cannot verify user is non-root",
    ],
)
def test_o10_an_image_that_starts_as_root_where_the_runtime_forbids_it_is_told_with_a_remedy(
    said: str,
) -> None:
    found = diagnose_backend(state(pod(waiting("CreateContainerConfigError", message=said))))
    assert (found.reason, found.hard) == (Reason.POD_SECURITY_DENIED, True)
    assert said in found.message
    assert "set podSecurity.runAsUser" in found.message


def claim(phase: str = "Pending", **spec: Any) -> Object:
    return {"metadata": {"name": "chat-cache", "namespace": "team"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("given", "classes", "missing"),
    [
        (claim(storageClassName="slow"), {"fast": True}, True),
        (claim(storageClassName="fast"), {"fast": False}, False),
        (claim(), {"fast": False}, True),
        (claim(), {"fast": True}, False),
        (claim(storageClassName="slow"), None, False),
        (claim(storageClassName=""), {}, False),
        (claim("Bound", storageClassName="slow"), {}, False),
        (claim(storageClassName="slow", volumeName="by-hand"), {}, False),
    ],
)
def test_o7_a_claim_that_waits_for_a_missing_storage_class_is_seen(
    given: Object, classes: dict[str, bool] | None, missing: bool
) -> None:
    found = diagnose_backend(state(pod({}), claim=given, storage_classes=classes))
    assert (found.reason is Reason.STORAGE_CLASS_MISSING) is missing


def test_o7_a_claim_is_no_trouble_while_a_replica_serves() -> None:
    deployment: Object = {"spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": 1}}
    given = state(
        pod(running(ready=True)),
        deployment=deployment,
        claim=claim(storageClassName="slow"),
        storage_classes={},
    )
    assert not diagnose_backend(given).hard


def test_messages_stay_the_same_from_attempt_to_attempt() -> None:
    first = waiting("ErrImagePull", message='rpc error: manifest for "x:1" not found')
    second = waiting("ImagePullBackOff", message='Back-off pulling image "x:1": ErrImagePull: not found')
    assert diagnose_pod(pod(first)) == diagnose_pod(pod(second))
    early = waiting("CrashLoopBackOff", message="back-off 10s restarting failed container", restartCount=3)
    late = waiting("CrashLoopBackOff", message="back-off 5m0s restarting failed container", restartCount=9)
    assert diagnose_pod(pod(early)) == diagnose_pod(pod(late))


def test_pods_that_are_over_or_going_do_not_count() -> None:
    assert active(pod({"phase": "Running"}))
    assert not active(pod({"phase": "Failed"}))
    assert not active(pod({"phase": "Succeeded"}))
    assert not active(pod({}, deletionTimestamp="2026-11-30T08:00:00Z"))
