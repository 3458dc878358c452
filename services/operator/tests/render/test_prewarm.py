"""Cache volumes and the prewarm Job."""

from __future__ import annotations

import json

import pytest
from noctaya_api.model_source import cache_dir, parse_model_source
from noctaya_operator.kube.objects import Object
from noctaya_operator.render.prewarm import render_prewarm_job
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


PRIVATE: dict[str, object] = {"uri": OCI, "model": {"source": {"secretRef": {"name": "registry"}}}}


def test_h6_an_oci_model_is_pulled_with_credentials_that_are_no_argument() -> None:
    pod = job_pod(**PRIVATE, cache={"size": "20Gi"})
    login, manifest, _progress, pull = pod["initContainers"]
    assert manifest["image"] == "example.com/oras:1"
    assert manifest["args"] == [
        "manifest",
        "fetch",
        "--output",
        "/staging/model/.noctaya-manifest.json",
        OCI.removeprefix("oci://"),
        "--registry-config",
        "/var/run/noctaya/registry-login/config.json",
    ]
    assert login["image"] == "example.com/prewarm:1"
    assert login["args"] == [
        "registry-auth",
        "--config",
        "/var/run/noctaya/registry-auth/config.json",
        "--source",
        OCI,
        "--output",
        "/var/run/noctaya/registry-login/config.json",
    ]
    assert pull["image"] == "example.com/oras:1"
    assert pull["args"] == [
        "cp",
        "--no-tty",
        "--to-oci-layout",
        OCI.removeprefix("oci://"),
        "/staging/model:artifact",
        "--from-registry-config",
        "/var/run/noctaya/registry-login/config.json",
    ]
    agent = pod["containers"][0]
    assert {"name": "oci-staging", "mountPath": "/staging/model", "readOnly": True} in agent["volumeMounts"]
    assert agent["args"][:5] == ["stage", "--from", "/staging/model", "--source", OCI]
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["oci-staging"]["emptyDir"] == {"sizeLimit": "20Gi"}
    assert volumes["oci-registry-login"]["emptyDir"]["medium"] == "Memory"
    secret = volumes["oci-registry-auth"]["secret"]
    assert (secret["secretName"], secret["items"]) == (
        "registry",
        [{"key": ".dockerconfigjson", "path": "config.json"}],
    )


def test_m6_a_pull_is_followed_by_a_sidecar_that_only_reads() -> None:
    pod = job_pod(**PRIVATE)
    (progress,) = [each for each in pod["initContainers"] if each["name"] == "pull-progress"]
    assert progress["restartPolicy"] == "Always"
    assert progress["image"] == "example.com/prewarm:1"
    assert progress["args"] == [
        "follow-pull",
        "--layout",
        "/staging/model",
        "--manifest",
        "/staging/model/.noctaya-manifest.json",
    ]
    assert progress["volumeMounts"] == [
        {"name": "oci-staging", "mountPath": "/staging/model", "readOnly": True}
    ]
    (port,) = progress["ports"]
    assert progress["env"] == [
        {"name": "NOCTAYA_PREWARM_LISTEN_ADDR", "value": f":{port['containerPort']}"}
    ], "beside the agent's own port, which it must not take"
    assert port["containerPort"] != pod["containers"][0]["ports"][0]["containerPort"]


def test_m3_only_the_login_sees_the_pull_secret() -> None:
    pod = job_pod(**PRIVATE)
    users = {
        container["name"]
        for container in (*pod["initContainers"], *pod["containers"])
        for mount in container["volumeMounts"]
        if mount["name"] == "oci-registry-auth"
    }
    assert users == {"registry-auth"}


def test_m3_a_registrys_own_authority_comes_with_its_secret_if_it_is_there() -> None:
    pod = job_pod(**PRIVATE)
    authority = next(each["secret"] for each in pod["volumes"] if each["name"] == "oci-registry-ca")
    assert authority["optional"] is True
    assert authority["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    for client in (pod["initContainers"][1], pod["initContainers"][3]):
        entry = client["env"][-1]
        (mount,) = [each for each in client["volumeMounts"] if each["name"] == "oci-registry-ca"]
        assert entry == {"name": "SSL_CERT_FILE", "value": f"{mount['mountPath']}/ca.crt"}


def test_h6_a_public_oci_model_needs_no_credentials() -> None:
    manifest, _, pull = job_pod(uri=OCI)["initContainers"]
    assert not [arg for arg in (*manifest["args"], *pull["args"]) if "registry-config" in arg]
    assert not [arg for arg in (*manifest["args"], *pull["args"]) if "plain-http" in arg]
    assert not [volume for volume in job_pod(uri=OCI)["volumes"] if "secret" in volume]


def test_a_registry_without_tls_is_asked_for_by_its_endpoint() -> None:
    endpoint = {"source": {"endpoint": "http://registry.example.com:5000"}}
    manifest, _, pull = job_pod(uri=OCI, model=endpoint)["initContainers"]
    assert "--plain-http" in manifest["args"]
    assert "--from-plain-http" in pull["args"]


def test_a_failed_pull_leaves_its_last_words() -> None:
    manifest, _, pull = job_pod(uri=OCI)["initContainers"]
    for client in (manifest, pull):
        assert client["terminationMessagePolicy"] == "FallbackToLogsOnError"


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
    ("uri", "canonical"),
    [
        ("HuggingFace://org/model@v2", "hf://org/model@v2"),
        ("modelscope://org/model", "modelscope://org/model"),
        ("s3://bucket/model/", "s3://bucket/model"),
    ],
)
def test_the_agent_is_told_source_target_and_marker(uri: str, canonical: str) -> None:
    planned = plan(service(uri=uri, cache={"prewarm": True}))
    agent = pod_of(objects(planned)["Job/chat-prewarm"])["containers"][0]
    target = cache_dir(planned.source)
    assert agent["command"] == ["noctaya-prewarm"]
    place = ["--target", target, "--marker", f"{target}/.noctaya-ready"]
    assert agent["args"] == ["download", "--source", canonical, *place]
    (wait,) = pod_of(objects(planned)["Deployment/chat"])["initContainers"]
    assert wait["args"] == ["wait", *place[2:], "--source", canonical, "--timeout", "10m"]


def test_m3_patterns_endpoint_region_and_patience_reach_the_agent() -> None:
    source = {
        "files": {"include": ["*.json", "*.safetensors"], "exclude": ["original/*"]},
        "endpoint": "https://minio.example.com:9000",
        "region": "eu-west-1",
        "secretRef": {"name": "bucket"},
    }
    pod = job_pod(uri="s3://bucket", model={"source": source}, cache={"prewarmTimeout": "90m"})
    agent = pod["containers"][0]
    assert agent["args"][7:] == [
        *("--include", "*.json", "--include", "*.safetensors"),
        *("--exclude", "original/*"),
    ]
    assert env_of(agent) == {
        "NOCTAYA_PREWARM_SECRET_DIR": "/var/run/noctaya/model-secret",
        "NOCTAYA_PREWARM_CA_FILE": "/var/run/noctaya/model-secret/ca.crt",
        "NOCTAYA_PREWARM_ENDPOINT": "https://minio.example.com:9000",
        "NOCTAYA_PREWARM_REGION": "eu-west-1",
        "NOCTAYA_PREWARM_DEADLINE": "1h30m0s",
    }
    secret = {"secretName": "bucket", "defaultMode": 0o440}
    assert {"name": "model-secret", "secret": secret} in pod["volumes"]
    mount = {"name": "model-secret", "mountPath": "/var/run/noctaya/model-secret", "readOnly": True}
    assert mount in agent["volumeMounts"]


@pytest.mark.parametrize("prewarm", [True, False])
def test_m3_a_token_is_a_file_for_whoever_downloads_and_for_nobody_else(prewarm: bool) -> None:
    given = service(model={"source": {"secretRef": {"name": "hub"}}}, cache={"prewarm": prewarm})
    found = objects(plan(given))
    serving = pod_of(found["Deployment/chat"])
    fetches = env_of(serving["containers"][0]).get("HF_TOKEN_PATH")
    mounted = [each for each in serving["volumes"] if each["name"] == "model-secret"]
    assert (fetches, bool(mounted)) == (
        (None, False) if prewarm else ("/var/run/noctaya/model-secret/token", True)
    )
    # Neither name nor value of it stands in arguments or environment of anybody.
    for obj in found.values():
        for part in ("env", "args"):
            assert '"hub"' not in json.dumps(parts(obj, part))


def parts(value: object, named: str) -> list[object]:
    if isinstance(value, dict):
        own = [value[named]] if named in value else []
        return own + [each for item in value.values() for each in parts(item, named)]
    return [each for item in value for each in parts(item, named)] if isinstance(value, list) else []


def test_m3_an_engine_that_fetches_for_itself_knows_the_mirror() -> None:
    mirror = {"source": {"endpoint": "https://mirror.example.com/hub"}}
    assert env_of(engine(plan(service(model=mirror))))["HF_ENDPOINT"] == "https://mirror.example.com/hub"
    given = service(uri="modelscope://org/model", model=mirror)
    assert env_of(engine(plan(given)))["MODELSCOPE_DOMAIN"] == "mirror.example.com"


def test_an_engine_with_a_plain_directory_asks_no_hub_and_keeps_the_models_name() -> None:
    container = engine(plan(service(uri="hf://org/model@v2", cache={"prewarm": True})))
    target = cache_dir(parse_model_source("hf://org/model@v2"))
    assert container["args"] == [target, "--served-model-name", "org/model"]
    assert env_of(container) == {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_MODULES_CACHE": "/tmp/hf-modules",
        "HF_HOME": "/cache/hf",
        "MODELSCOPE_CACHE": "/cache/modelscope",
    }


def test_a_name_that_the_runtime_gives_is_kept() -> None:
    on = runtime(container={"args": ["{{ .Model.Path }}", "--served-model-name=mine"]})
    given = service(cache={"prewarm": True})
    assert engine(plan(given, on=on))["args"][1:] == ["--served-model-name=mine"]
    other = runtime(family="llamacpp")
    assert len(engine(plan(given, on=other))["args"]) == 1


@pytest.mark.parametrize("prune", [True, False])
def test_former_weights_are_removed_when_asked(prune: bool) -> None:
    planned = plan(service(cache={"prewarm": True}))
    assert planned.prewarm is not None
    job = render_prewarm_job(planned, planned.prewarm, prune=prune)
    assert ("--prune" in pod_of(job)["containers"][0]["args"]) is prune


@pytest.mark.parametrize(("cache", "seconds"), [({}, 43800), ({"prewarmTimeout": "90s500ms"}, 691)])
@pytest.mark.parametrize("uri", [OCI, "hf://org/model"])
def test_m2_nothing_before_or_in_the_agent_hangs_for_ever(
    uri: str, cache: dict[str, object], seconds: int
) -> None:
    found = objects(plan(service(uri=uri, cache={"prewarm": True, **cache})))
    assert found["Job/chat-prewarm"]["spec"]["activeDeadlineSeconds"] == seconds


def test_a_download_that_hangs_is_started_anew() -> None:
    agent = job_pod(cache={"prewarm": True})["containers"][0]
    assert agent["ports"] == [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]
    assert agent["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 8080}


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
