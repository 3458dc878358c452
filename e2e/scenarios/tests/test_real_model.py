"""The quickstart on the cluster: a real language model from zero, asked by the openai SDK, and gone again."""

from __future__ import annotations

import pytest
import yaml
from noctaya_demo.weights import FOLDER, ensure_weights, models_directory
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.manifests import STUB_IMAGE, merged
from noctaya_scenarios.release import REPOSITORY
from noctaya_scenarios.scene import Scene, holds

QUICKSTART = REPOSITORY / "examples" / "quickstart"
CHUNK = 8 << 20


def fill_claim(lab: Lab, scene: Scene) -> None:
    """A claim `models` with the weights, brought by a Pod that mounts it."""
    models = models_directory()
    models.mkdir(parents=True, exist_ok=True)
    ensure_weights(models)
    (weights,) = (models / FOLDER).glob("*.gguf")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models", "namespace": scene.namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    container = {
        "name": "loader",
        "image": STUB_IMAGE,
        "command": ["/bin/sh", "-c", "sleep 900"],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "loader", "namespace": scene.namespace},
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        },
    }
    scene.api.create(claim)
    scene.api.create(pod)
    path = f"/api/v1/namespaces/{scene.namespace}/pods/loader"
    scene.until(lambda: holds(scene.api.get(path)["status"], "Ready"), within=180, what="the loader")
    target = f"/models/{FOLDER}/{weights.name}"
    script = f"mkdir -p /models/{FOLDER} && cat > {target}"
    into = ("-n", scene.namespace, "exec", "-i", "loader", "--", "/bin/sh", "-c")
    lab.access.kubectl(*into, script, stdin=weights.read_bytes(), within=300)
    counted = lab.access.kubectl(*into, f"python3 -c 'import os; print(os.path.getsize(\"{target}\"))'")
    assert int(counted) == weights.stat().st_size
    scene.delete_pod("loader", grace=0)


@pytest.mark.long
def test_the_quickstart_answers_from_zero_to_the_openai_sdk_and_goes_back_to_zero(
    lab: Lab, scene: Scene
) -> None:
    import openai  # 1 s of CPU that only the process needs that runs this

    fill_claim(lab, scene)
    namespace = f"/api/v1/namespaces/{scene.namespace}"
    scene.api.merge(namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    runtime = yaml.safe_load((QUICKSTART / "runtime.yaml").read_text())
    runtime["metadata"]["name"] = scene.runtime("llamacpp")
    scene.api.delete(f"/apis/serving.noctaya.io/v1alpha1/inferenceruntimes/{runtime['metadata']['name']}")
    scene.api.create(runtime)
    service = yaml.safe_load((QUICKSTART / "service.yaml").read_text())
    changes = {
        "runtime": {"name": runtime["metadata"]["name"]},
        "resources": {"cpu": "100m"},
        "scaling": {"drainTimeout": "5s"},
    }
    scene.create("smollm2", **merged(service["spec"], changes))
    scene.await_idle("smollm2")
    endpoint = scene.client("smollm2")
    with openai.OpenAI(
        base_url=f"http://{endpoint.host}:{endpoint.port}/v1", api_key="none", max_retries=0, timeout=150
    ) as client:
        assert [model.id for model in client.models.list()] == ["smollm2"]
        assert scene.replicas("smollm2") == 0
        question = "What is the capital of France? Answer in one word."
        chunks = list(
            client.chat.completions.create(
                model="smollm2",
                messages=[{"role": "user", "content": question}],
                max_tokens=24,
                temperature=0,
                stream=True,
            )
        )
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert "Paris" in said
        again = client.chat.completions.create(
            model="smollm2", messages=[{"role": "user", "content": question}], max_tokens=24, temperature=0
        )
        assert "Paris" in (again.choices[0].message.content or "")
    scene.await_zero("smollm2")
