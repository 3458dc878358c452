"""Cache volumes and the prewarm Job."""

from __future__ import annotations

import pytest
from noctaya_operator.kube.objects import Object
from samples import OCI, engine, env_of, objects, plan, pod_of, rendered, runtime, service

CACHE = {"name": "model-cache", "mountPath": "/cache"}


def job_pod(**given: object) -> Object:
    return pod_of(objects(plan(service(**given)))["Job/chat-prewarm"])


def test_h1_a_node_local_cache_is_one_claim_and_its_environment() -> None:
    planned = plan()
    assert objects(planned)["PersistentVolumeClaim/chat-cache"]["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert env_of(engine(planned)) == {"HF_HOME": "/cache/hf", "MODELSCOPE_CACHE": "/cache/modelscope"}
    assert engine(planned)["volumeMounts"][-1] == CACHE


def test_h2_a_host_path_needs_no_claim() -> None:
    found = objects(plan(service(cache={"strategy": "HostPath"})))
    assert "PersistentVolumeClaim/chat-cache" not in found
    volume = pod_of(found["Deployment/chat"])["volumes"][-1]
    path = "/var/lib/noctaya/cache/team-chat"
    assert volume == {"name": "model-cache", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def test_h3_without_a_strategy_nothing_is_kept() -> None:
    found = objects(plan(service(cache={"strategy": "None"})))
    assert "PersistentVolumeClaim/chat-cache" not in found
    assert [volume["name"] for volume in pod_of(found["Deployment/chat"])["volumes"]] == ["dshm"]


def test_h4_a_shared_prewarmed_cache_has_one_writer() -> None:
    planned = plan(service(cache={"strategy": "SharedPVC", "prewarm": True}))
    found = objects(planned)
    assert found["PersistentVolumeClaim/chat-cache"]["spec"]["accessModes"] == ["ReadWriteMany"]
    assert engine(planned)["volumeMounts"][-1] == {**CACHE, "readOnly": True}
    assert "initContainers" in pod_of(found["Deployment/chat"])
    assert pod_of(found["Job/chat-prewarm"])["containers"][0]["volumeMounts"][0] == CACHE
    for kind in ("PersistentVolumeClaim/chat-cache", "Job/chat-prewarm"):
        assert found[kind]["metadata"]["annotations"]["serving.noctaya.io/create-once-hash"]
        assert rendered(planned)[kind].mode == "CreateOnce"


def test_h5_a_shared_cache_nobody_fills_stays_writable() -> None:
    planned = plan(service(cache={"strategy": "SharedPVC"}))
    assert engine(planned)["volumeMounts"][-1] == CACHE
    assert "initContainers" not in pod_of(objects(planned)["Deployment/chat"])


def test_h6_an_oci_model_is_pulled_with_credentials_that_are_no_argument() -> None:
    pod = job_pod(uri=OCI, model={"source": {"secretRef": {"name": "registry"}}})
    (pull,) = pod["initContainers"]
    assert pull["image"] == "example.com/oras:1"
    assert pull["args"] == [
        "pull",
        OCI.removeprefix("oci://"),
        "--output",
        "/staging/model",
        "--no-tty",
        "--registry-config",
        "/var/run/noctaya/registry-auth/config.json",
    ]
    (secret,) = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    assert secret["secretName"] == "registry"
    assert secret["items"] == [{"key": ".dockerconfigjson", "path": "config.json"}]
    agent = pod["containers"][0]
    assert {"name": "oci-staging", "mountPath": "/staging/model", "readOnly": True} in agent["volumeMounts"]
    assert agent["args"][:3] == ["stage", "--from", "/staging/model"]


def test_h6_a_public_oci_model_needs_no_credentials() -> None:
    pod = job_pod(uri=OCI)
    assert "--registry-config" not in pod["initContainers"][0]["args"]
    assert not [volume for volume in pod["volumes"] if "secret" in volume]


def test_h6_the_engine_mounts_an_oci_cache_read_only() -> None:
    assert engine(plan(service(uri=OCI)))["volumeMounts"][-1] == {**CACHE, "readOnly": True}


def test_h10_the_job_goes_where_the_engine_goes_without_a_device() -> None:
    placement = {
        "nodeSelector": {"gpu": "a10"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "scheduler": {"name": "volcano", "queue": "q"},
    }
    found = objects(plan(service(cache={"prewarm": True}), on=runtime(accelerator=placement)))
    job, backend = pod_of(found["Job/chat-prewarm"]), pod_of(found["Deployment/chat"])
    for field in ("nodeSelector", "tolerations", "schedulerName"):
        assert job[field] == backend[field]
    assert "resources" not in job["containers"][0]
    assert job["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("uri", "target"),
    [("hf://org/model@v2", "/cache/hf"), ("modelscope://org/model", "/cache/modelscope")],
)
def test_the_agent_is_told_source_target_and_marker(uri: str, target: str) -> None:
    agent = job_pod(uri=uri, cache={"prewarm": True})["containers"][0]
    assert agent["command"] == ["noctaya-prewarm"]
    place = ["--target", target, "--marker", "/cache/.noctaya-ready"]
    assert agent["args"] == ["download", "--source", uri, *place]


def test_h10_a_claim_for_one_node_draws_the_job_beside_the_engine() -> None:
    assert "affinity" in job_pod(cache={"prewarm": True})
    assert "affinity" not in job_pod(cache={"prewarm": True, "strategy": "SharedPVC"})


def test_m3_what_reaches_a_hub_reaches_it_from_the_job_too_and_nothing_else() -> None:
    reference = {"secretKeyRef": {"name": "hub", "key": "token"}}
    env = [
        {"name": "HF_TOKEN", "valueFrom": reference},
        {"name": "HTTPS_PROXY", "value": "http://proxy.{{ .Service.Namespace }}:3128"},
        {"name": "NO_PROXY", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": "VLLM_API_KEY", "value": "secret"},
    ]
    planned = plan(service(cache={"prewarm": True}), on=runtime(container={"env": env}))
    assert pod_of(objects(planned)["Job/chat-prewarm"])["containers"][0]["env"] == [
        {"name": "HF_HOME", "value": "/cache/hf"},
        {"name": "MODELSCOPE_CACHE", "value": "/cache/modelscope"},
        {"name": "HF_TOKEN", "valueFrom": reference},
        {"name": "HTTPS_PROXY", "value": "http://proxy.team:3128"},
    ]


def test_o3_a_retained_claim_has_no_controller_and_says_so() -> None:
    claim = rendered(plan(service(cache={"retain": True})))["PersistentVolumeClaim/chat-cache"]
    assert not claim.controlled
    assert claim.object["metadata"]["annotations"]["serving.noctaya.io/retain"] == "true"
    others = rendered(plan(service(cache={"prewarm": True}), gateways=2)).values()
    assert all(each.controlled for each in others)


def test_an_empty_storage_class_is_none() -> None:
    planned = plan(service(cache={"storageClassName": ""}))
    assert "storageClassName" not in objects(planned)["PersistentVolumeClaim/chat-cache"]["spec"]
