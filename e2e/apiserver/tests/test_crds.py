"""The CRDs as the API server takes them: structural, found by their short names, shown at a glance."""

from __future__ import annotations

from typing import Any

import pytest
from noctaya_apiserver import ApiClient
from noctaya_apiserver.client import TABLE, Object

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/serving.noctaya.io/v1alpha1"
OURS = ["inferenceruntimes.serving.noctaya.io", "llmservices.serving.noctaya.io"]
KEDAS = [
    "cloudeventsources.eventing.keda.sh",
    "clustercloudeventsources.eventing.keda.sh",
    "clustertriggerauthentications.keda.sh",
    "scaledjobs.keda.sh",
    "scaledobjects.keda.sh",
    "triggerauthentications.keda.sh",
]


def service(name: str = "chat", namespace: str = "default", **spec: Any) -> Object:
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "LLMService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"model": {"source": {"uri": "hf://org/model"}}, "runtime": {"name": "engine"}, **spec},
    }


@pytest.mark.parametrize("name", OURS + KEDAS)
def test_every_crd_is_established_and_structural(api: ApiClient, name: str) -> None:
    crd = api.get(f"{CRDS}/{name}")
    conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert crd["status"]["storedVersions"] == ["v1alpha1"]


def test_applying_the_crds_again_changes_nothing(api: ApiClient, crds: list[Object]) -> None:
    before = [api.get(f"{CRDS}/{name}")["metadata"]["resourceVersion"] for name in OURS]
    api.apply_all(crds)
    assert [api.get(f"{CRDS}/{name}")["metadata"]["resourceVersion"] for name in OURS] == before


def test_short_names_categories_and_subresources(api: ApiClient) -> None:
    found = {
        each["name"]: (each["namespaced"], each.get("shortNames"), each.get("categories"))
        for each in api.get(GROUP)["resources"]
    }
    assert found == {
        "llmservices": (True, ["llm"], ["noctaya"]),
        "llmservices/status": (True, None, None),
        "inferenceruntimes": (False, ["ir"], ["noctaya"]),
        "inferenceruntimes/status": (False, None, None),
    }


def test_kubectl_get_answers_at_a_glance(api: ApiClient, namespace: str) -> None:
    api.create(service(namespace=namespace))
    path = f"{GROUP}/namespaces/{namespace}/llmservices"
    kept = {"state": "Awake", "replicas": 2}
    status = {"phase": "Ready", "resolvedRuntime": "engine", "replicas": 2, "keep": kept}
    api.merge(f"{path}/chat/status", {"status": status})
    table = api.request("GET", path, accept=TABLE)
    columns = [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Phase", "string", 0),
        ("Runtime", "string", 0),
        ("Replicas", "integer", 0),
        ("Kept", "string", 1),
        ("Age", "date", 0),
    ]
    (row,) = table["rows"]
    assert row["cells"][:-1] == ["chat", "Ready", "engine", 2, "Awake"]


def test_runtimes_show_their_image_only_when_wide(api: ApiClient) -> None:
    table = api.request("GET", f"{GROUP}/inferenceruntimes", accept=TABLE)
    columns = {each["name"]: each["priority"] for each in table["columnDefinitions"]}
    assert [name for name, priority in columns.items() if priority == 0] == [
        "Name",
        "Family",
        "Vendor",
        "Age",
    ]
    assert [name for name, priority in columns.items() if priority == 1] == ["Image"]


def test_a_scale_subresource_is_not_offered(api: ApiClient, namespace: str) -> None:
    api.create(service(namespace=namespace))
    assert api.find(f"{GROUP}/namespaces/{namespace}/llmservices/chat/scale") is None


def test_writing_the_status_leaves_the_spec_alone(api: ApiClient, namespace: str) -> None:
    created = api.create(service(namespace=namespace))
    changed = {**created, "spec": {**created["spec"], "imagePullSecrets": [{"name": "x"}]}}
    written = api.replace({**changed, "status": {"phase": "Loading"}}, subresource="status")
    assert written["status"] == {"phase": "Loading"}
    assert written["spec"] == created["spec"]
    assert written["metadata"]["generation"] == 1


def test_writing_the_object_leaves_the_status_alone(api: ApiClient, namespace: str) -> None:
    created = api.create({**service(namespace=namespace), "status": {"phase": "Ready"}})
    assert "status" not in created
    changed = {**created["spec"], "imagePullSecrets": [{"name": "x"}]}
    written = api.replace({**created, "spec": changed, "status": {"phase": "Ready"}})
    assert "status" not in written
    assert written["metadata"]["generation"] == 2


def test_conditions_of_two_writers_are_merged_by_type(api: ApiClient, namespace: str) -> None:
    api.create(service(namespace=namespace))
    for manager, kind in (("one", "Ready"), ("two", "Degraded")):
        condition = {
            "type": kind,
            "status": "True",
            "reason": "Because",
            "message": "",
            "lastTransitionTime": "2026-11-30T08:00:00Z",
        }
        body = {**service(namespace=namespace), "status": {"conditions": [condition]}}
        del body["spec"]
        stored = api.apply(body, manager=manager, subresource="status")
    assert [each["type"] for each in stored["status"]["conditions"]] == ["Ready", "Degraded"]
