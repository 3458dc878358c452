"""The engine's Deployment and Pod."""

from __future__ import annotations

import pytest
from noctaya_operator.kube.objects import Object
from noctaya_operator.precedent import Precedent
from samples import FROM_ALPHA, OCI, backend, engine, objects, plan, pod_of, rendered, runtime, service


def test_r3_shared_memory_is_memory() -> None:
    planned = plan()
    assert pod_of(backend(planned))["volumes"][0] == {"name": "dshm", "emptyDir": {"medium": "Memory"}}
    assert engine(planned)["volumeMounts"][0] == {"name": "dshm", "mountPath": "/dev/shm"}


def test_r4_cpu_is_requested_and_memory_is_limited_too() -> None:
    given = service(resources={"cpu": "2000m", "memory": "2048Mi", "accelerators": 4})
    assert engine(plan(given))["resources"] == {
        "requests": {"cpu": "2", "memory": "2Gi"},
        "limits": {"memory": "2Gi", "nvidia.com/gpu": "4"},
    }


def test_r5_the_device_is_a_limit_and_replicas_are_never_ours() -> None:
    assert engine(plan())["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert "replicas" not in backend(plan())["spec"]
    assert rendered(plan())["Deployment/chat"].mode == "CreateAtZero"


@pytest.mark.parametrize(("vendor", "accelerators"), [("cpu", 1), ("cpu", 0), ("nvidia", 0)])
def test_without_a_device_nothing_is_limited(vendor: str, accelerators: int) -> None:
    planned = plan(service(resources={"accelerators": accelerators}), on=runtime(vendor=vendor))
    assert "resources" not in engine(planned)


@pytest.mark.parametrize(
    ("vendor", "resource"),
    [
        ("nvidia", "nvidia.com/gpu"),
        ("ascend", "huawei.com/Ascend910"),
        ("amd", "amd.com/gpu"),
        ("intel", "gpu.intel.com/xe"),
    ],
)
def test_every_vendor_limits_its_device(vendor: str, resource: str) -> None:
    assert engine(plan(on=runtime(vendor=vendor)))["resources"]["limits"] == {resource: "1"}


def grace_and_command(
    drain: str, *, runtime_grace: int | None, enabled: bool = True
) -> tuple[object, object]:
    lifecycle: Object = {"preStopDrain": enabled}
    if runtime_grace is not None:
        lifecycle["terminationGracePeriodSeconds"] = runtime_grace
    planned = plan(service(scaling={"drainTimeout": drain}), on=runtime(lifecycle=lifecycle))
    hook = engine(planned).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [""])
    return pod_of(backend(planned)).get("terminationGracePeriodSeconds"), hook[-1]


@pytest.mark.parametrize(
    ("drain", "runtime_grace", "expected"),
    [
        ("90s", 30, (100, "sleep 90")),
        ("90s", 120, (120, "sleep 90")),
        ("1.5s", None, (12, "sleep 2")),
        ("0s", None, (None, "")),
        ("0s", 45, (45, "")),
    ],
)
def test_r7_r8_a_draining_pod_lives_long_enough(
    drain: str, runtime_grace: int | None, expected: tuple[object, object]
) -> None:
    assert grace_and_command(drain, runtime_grace=runtime_grace) == expected


def test_r9_no_drain_when_the_runtime_does_not_want_one() -> None:
    assert grace_and_command("90s", runtime_grace=None, enabled=False) == (None, "")
    assert "lifecycle" not in engine(plan())


def test_r10_staged_weights_are_mounted_read_only() -> None:
    planned = plan(service(uri="pvc://models/tiny"))
    assert engine(planned)["volumeMounts"][1] == {
        "name": "model-store",
        "mountPath": "/models",
        "readOnly": True,
    }
    assert pod_of(backend(planned))["volumes"][1] == {
        "name": "model-store",
        "persistentVolumeClaim": {"claimName": "models", "readOnly": True},
    }


def test_r11_ascend_images_get_the_nodes_driver_read_only() -> None:
    planned = plan(on=runtime(vendor="ascend"))
    paths = {
        "ascend-driver": "/usr/local/Ascend/driver",
        "npu-smi": "/usr/local/bin/npu-smi",
        "dcmi": "/usr/local/dcmi",
        "ascend-install-info": "/etc/ascend_install.info",
    }
    mounts = [mount for mount in engine(planned)["volumeMounts"] if mount["name"] in paths]
    assert mounts == [{"name": name, "mountPath": path, "readOnly": True} for name, path in paths.items()]
    volumes = [volume for volume in pod_of(backend(planned))["volumes"] if volume["name"] in paths]
    assert volumes == [{"name": name, "hostPath": {"path": path}} for name, path in paths.items()]


@pytest.mark.parametrize("vendor", ["nvidia", "amd", "intel", "cpu"])
def test_other_vendors_mount_nothing_of_the_node(vendor: str) -> None:
    assert "hostPath" not in str(backend(plan(on=runtime(vendor=vendor))))


def test_r13_the_queue_is_an_annotation_of_backend_and_prewarm_pods() -> None:
    on = runtime(accelerator={"scheduler": {"name": "volcano", "queue": "models"}})
    found = objects(plan(service(cache={"prewarm": True}), on=on))
    for name in ("Deployment/chat", "Job/chat-prewarm"):
        template = found[name]["spec"]["template"]
        assert template["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "models"}
        assert template["spec"]["schedulerName"] == "volcano"
    assert "annotations" not in found["Deployment/chat-gateway"]["spec"]["template"]["metadata"]


def test_a_scheduler_without_a_queue_is_fine() -> None:
    on = runtime(accelerator={"scheduler": {"name": "hami-scheduler"}})
    template = backend(plan(on=on))["spec"]["template"]
    assert template["spec"]["schedulerName"] == "hami-scheduler"
    assert "annotations" not in template["metadata"]


def test_r14_every_pod_gets_the_pull_secrets_once() -> None:
    secrets = [{"name": "a"}, {"name": "b"}, {"name": "a"}, {"name": ""}]
    found = objects(plan(service(cache={"prewarm": True}, imagePullSecrets=secrets), gateways=2))
    for name in ("Deployment/chat", "Deployment/chat-gateway", "Deployment/chat-scaler", "Job/chat-prewarm"):
        assert pod_of(found[name])["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("vendor", "strategy", "surges"),
    [
        ("nvidia", "None", False),
        ("nvidia", "SharedPVC", False),
        ("cpu", "NodeLocalPVC", False),
        ("cpu", "None", True),
        ("cpu", "HostPath", True),
    ],
)
def test_o8_a_rollout_needs_no_hardware_that_is_not_there(vendor: str, strategy: str, surges: bool) -> None:
    planned = plan(service(cache={"strategy": strategy}), on=runtime(vendor=vendor))
    surge = {"maxSurge": "25%", "maxUnavailable": "25%"} if surges else {"maxSurge": 0, "maxUnavailable": 1}
    assert backend(planned)["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": surge}


def test_o11_replicas_stay_beside_a_claim_only_one_node_can_mount() -> None:
    apart = plan(service(scaling={"max": 2}, cache={"strategy": "SharedPVC"}))
    assert "affinity" not in pod_of(backend(apart))
    together = pod_of(backend(plan(service(scaling={"max": 2}))))["affinity"]["podAffinity"]
    (term,) = together["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    # The first Pod finds no other and is let through because it matches itself.
    labels = backend(plan())["spec"]["template"]["metadata"]["labels"]
    assert term["labelSelector"]["matchLabels"].items() <= labels.items()


def test_h6_an_engine_waits_for_weights_it_can_not_bring() -> None:
    (wait,) = pod_of(backend(plan(service(uri=OCI))))["initContainers"]
    assert wait["args"][:2] == ["wait", "--marker"]
    assert wait["args"][2].endswith("/.noctaya-ready")
    assert wait["volumeMounts"] == [{"name": "model-cache", "mountPath": "/cache", "readOnly": True}]


def test_h9_an_engine_that_brings_its_weights_itself_does_not_wait() -> None:
    given = service(cache={"prewarm": True})
    for precedent in (FROM_ALPHA, Precedent(failed=True)):
        assert "initContainers" not in pod_of(backend(plan(given, precedent=precedent)))
    assert "initContainers" not in pod_of(backend(plan()))
