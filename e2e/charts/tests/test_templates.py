"""What holds for everything that the charts render, in every shape of the matrix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm, Object
from noctaya_charts.matrix import MATRIX, cases

NAMESPACE = "models"
CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
OTHER_NAMESPACES = {"Role", "RoleBinding", "ServiceMonitor"}

Case = tuple[str, str]


def pods(objects: list[Object]) -> Iterator[tuple[Object, Object]]:
    """Each workload with the template of its Pods."""
    for each in objects:
        if each["kind"] in {"Deployment", "Job"}:
            yield each, each["spec"]["template"]


@pytest.fixture(scope="module", params=list(cases()), ids=lambda case: "-".join(case).replace(" ", "-"))
def objects(request: pytest.FixtureRequest, helm: Helm) -> list[Object]:
    """Everything rendered for one shape of the matrix; not to be changed."""
    chart, shape = request.param
    return helm.template(CHARTS / chart, MATRIX[chart][shape], release="noctaya", namespace=NAMESPACE)


def test_objects_are_named_once_labelled_and_in_the_release_s_namespace(objects: list[Object]) -> None:
    seen: set[tuple[str, Any, str]] = set()
    for each in objects:
        kind, metadata = each["kind"], each["metadata"]
        key = (kind, metadata.get("namespace"), metadata["name"])
        assert key not in seen, key
        seen.add(key)
        assert len(metadata["name"]) <= 63 or kind == "CustomResourceDefinition", key
        if kind in CLUSTER_SCOPED:
            assert "namespace" not in metadata, key
        elif kind not in OTHER_NAMESPACES:
            assert metadata["namespace"] == NAMESPACE, key
        labels = metadata["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "Helm", key
        assert labels["app.kubernetes.io/instance"] == "noctaya", key
        assert labels["app.kubernetes.io/part-of"] == "noctaya", key
        assert re.fullmatch(r"noctaya[a-z-]*-\d+\.\d+\.\d+", labels["helm.sh/chart"]), key
        assert all(isinstance(value, str) for value in labels.values()), key
        assert all(isinstance(value, str) for value in metadata.get("annotations", {}).values()), key


def test_pods_meet_restricted_pod_security(objects: list[Object]) -> None:
    for owner, template in pods(objects):
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True, owner["metadata"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
        assert not [volume for volume in pod.get("volumes", ()) if "hostPath" in volume]


def test_only_the_operator_holds_a_cluster_credential(objects: list[Object]) -> None:
    for owner, template in pods(objects):
        is_operator = owner["metadata"]["name"].endswith("-controller-manager")
        assert ("serviceAccountName" in template["spec"]) == is_operator
        assert template["spec"].get("automountServiceAccountToken", True) == is_operator


def test_selectors_find_the_pods_they_are_made_for(objects: list[Object]) -> None:
    templates = {
        owner["metadata"]["name"]: template["metadata"]["labels"] for owner, template in pods(objects)
    }
    for each in objects:
        spec = each.get("spec", {})
        match each["kind"]:
            case "Deployment":
                wanted, found = spec["selector"]["matchLabels"], [templates[each["metadata"]["name"]]]
            case "PodDisruptionBudget":
                wanted, found = spec["selector"]["matchLabels"], list(templates.values())
            case "NetworkPolicy":
                wanted, found = spec["podSelector"]["matchLabels"], list(templates.values())
            case "Service" if not each["metadata"]["name"].endswith(("-backend", "-pods")):
                wanted, found = spec["selector"], list(templates.values())
            case _:
                continue
        hits = [labels for labels in found if wanted.items() <= labels.items()]
        assert len(hits) == 1, (each["kind"], each["metadata"]["name"])


def test_services_and_probes_name_ports_that_are_there(objects: list[Object]) -> None:
    by_labels = [(template["metadata"]["labels"], ports_of(template)) for _, template in pods(objects)]
    for each in objects:
        if each["kind"] != "Service" or each["metadata"]["name"].endswith(("-backend", "-pods")):
            continue
        selector = each["spec"]["selector"]
        (ports,) = [ports for labels, ports in by_labels if selector.items() <= labels.items()]
        for port in each["spec"]["ports"]:
            assert port["targetPort"] in ports, (each["metadata"]["name"], port)
    for _, template in pods(objects):
        for container in template["spec"]["containers"]:
            for kind in ("readinessProbe", "livenessProbe"):
                if kind in container:
                    assert container[kind]["httpGet"]["port"] in ports_of(template)


def ports_of(template: Object) -> set[Any]:
    ports = [port for container in template["spec"]["containers"] for port in container.get("ports", ())]
    return {port["name"] for port in ports} | {port["containerPort"] for port in ports}


def test_every_mounted_volume_is_there_and_every_volume_is_mounted(objects: list[Object]) -> None:
    for owner, template in pods(objects):
        pod = template["spec"]
        containers = (*pod.get("initContainers", ()), *pod["containers"])
        mounted = {mount["name"] for each in containers for mount in each.get("volumeMounts", ())}
        assert mounted == {volume["name"] for volume in pod.get("volumes", ())}, owner["metadata"]["name"]
        for each in containers:
            names = [entry["name"] for entry in each.get("env", ())]
            assert len(names) == len(set(names)), (owner["metadata"]["name"], names)


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: "-".join(case).replace(" ", "-"))
def test_lint_finds_nothing(helm: Helm, case: Case) -> None:
    chart, shape = case
    said = helm.run("lint", "--strict", CHARTS / chart, values=MATRIX[chart][shape])
    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said


def test_names_and_labels_fit_under_the_longest_release_name(helm: Helm) -> None:
    release = "r" * 53
    for chart, shape in cases():
        for each in helm.template(CHARTS / chart, MATRIX[chart][shape], release=release):
            name = each["metadata"]["name"]
            limit = 63 if each["kind"] in {"Service", "Deployment", "Job"} else 253
            assert len(name) <= limit, (chart, shape, each["kind"], name)
            assert all(len(value) <= 63 for value in each["metadata"]["labels"].values())
