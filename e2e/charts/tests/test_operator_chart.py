"""The operator's chart: rights, flags, CRDs, what is there only when asked for."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
import yaml
from noctaya_charts.generated import CHARTS, NAMES
from noctaya_charts.helm import Helm, Object
from noctaya_charts.matrix import MATRIX
from noctaya_operator.defaults import Images
from noctaya_operator.rbac import CLUSTER_SCOPED, LEADER_ELECTION, NAMESPACED
from noctaya_operator.settings import OFF, load_settings

CHART = CHARTS / "operator"
FULL_NAME = "noctaya"


def render(
    helm: Helm, values: dict[str, Any] | None = None, **options: str
) -> dict[tuple[str, str, str], Object]:
    """What the chart renders, by kind, namespace and name."""
    objects = helm.template(CHART, values or {}, **options)
    return {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in objects}


def rules(*groups: Any) -> list[Any]:
    return [rule.manifest() for group in groups for rule in group]


def deployment(helm: Helm, values: dict[str, Any] | None = None) -> Object:
    return render(helm, values)["Deployment", "noctaya-system", f"{FULL_NAME}-controller-manager"]


def container(helm: Helm, values: dict[str, Any] | None = None) -> Object:
    (found,) = deployment(helm, values)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_the_operator_has_exactly_the_rights_its_tests_hold_its_requests_against(helm: Helm) -> None:
    found = render(helm)
    role = found["ClusterRole", "", f"{FULL_NAME}-manager-role"]
    assert role["rules"] == rules(CLUSTER_SCOPED, NAMESPACED)
    lease = found["Role", "noctaya-system", f"{FULL_NAME}-leader-election"]
    assert lease["rules"] == rules(LEADER_ELECTION)
    account = {
        "kind": "ServiceAccount",
        "name": f"{FULL_NAME}-controller-manager",
        "namespace": "noctaya-system",
    }
    for kind, namespace, name in (
        ("ClusterRoleBinding", "", f"{FULL_NAME}-manager-rolebinding"),
        ("RoleBinding", "noctaya-system", f"{FULL_NAME}-leader-election"),
    ):
        assert found[kind, namespace, name]["subjects"] == [account]
    assert ("ServiceAccount", "noctaya-system", account["name"]) in found


def test_with_namespaces_it_has_rights_in_those_only(helm: Helm) -> None:
    found = render(helm, {"namespaces": ["a", "b", "a"]})
    assert found["ClusterRole", "", f"{FULL_NAME}-manager-role"]["rules"] == rules(CLUSTER_SCOPED)
    for namespace in ("a", "b"):
        role = found["Role", namespace, f"{FULL_NAME}-manager-role"]
        assert role["rules"] == rules(NAMESPACED)
        binding = found["RoleBinding", namespace, f"{FULL_NAME}-manager-rolebinding"]
        assert binding["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": role["metadata"]["name"],
        }
        assert binding["subjects"][0]["namespace"] == "noctaya-system"
    assert "--namespaces=a,b" in container(helm, {"namespaces": ["a", "b", "a"]})["args"]


def test_without_leader_election_there_is_no_right_to_leases_and_never_a_second_operator(helm: Helm) -> None:
    alone = {"operator": {"replicas": 1, "leaderElect": False}}
    found = render(helm, alone)
    assert not [key for key in found if key[0] in {"Role", "RoleBinding", "PodDisruptionBudget"}]
    assert deployment(helm, alone)["spec"]["strategy"] == {"type": "Recreate"}
    assert "affinity" not in deployment(helm, alone)["spec"]["template"]["spec"]


@pytest.mark.parametrize("shape", MATRIX["operator"])
def test_the_operator_takes_every_flag_it_is_given(
    helm: Helm, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NOCTAYA_NAMESPACES", "NOCTAYA_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    settings = load_settings(container(helm, MATRIX["operator"][shape])["args"])
    assert settings.leader_elect is (shape != "one")
    assert (settings.metrics_bind_address == OFF) is (shape == "one")
    assert settings.namespaces == (("default", "kube-public") if shape == "restricted" else ())
    assert settings.gateway_replicas == (3 if shape == "several gateways" else 1)


@pytest.mark.parametrize(
    ("values", "images"),
    [
        (
            {},
            {
                "operator": "ghcr.io/noctaya/noctaya:0.5.0",
                "gateway": "ghcr.io/noctaya/noctaya-gateway:0.5.0",
                "aggregate-scaler": "ghcr.io/noctaya/noctaya-aggregate-scaler:0.5.0",
                "prewarm": "ghcr.io/noctaya/noctaya-prewarm-agent:0.5.0",
                "oras": "ghcr.io/oras-project/oras:v1.3.0",
            },
        ),
        (
            {
                "image": {
                    "registry": "r.example.com:5000/team/",
                    "tag": "9",
                    "gateway": "gw@sha256:1",
                    "oras": "oras",
                }
            },
            {
                "operator": "r.example.com:5000/team/noctaya:9",
                "gateway": "r.example.com:5000/team/gw@sha256:1",
                "oras": "r.example.com:5000/team/oras:9",
            },
        ),
        (
            {"image": {"registry": ""}, "global": {"imageRegistry": "mirror:5000/"}},
            {
                "operator": "mirror:5000/noctaya:0.5.0",
                "oras": "mirror:5000/oras-project/oras:v1.3.0",
            },
        ),
        (
            {"global": {"imageRegistry": "mirror.example.com/cache"}},
            {
                "operator": "mirror.example.com/cache/noctaya/noctaya:0.5.0",
                "gateway": "mirror.example.com/cache/noctaya/noctaya-gateway:0.5.0",
                "oras": "mirror.example.com/cache/oras-project/oras:v1.3.0",
            },
        ),
    ],
)
def test_images_are_registry_name_and_tag_unless_they_say_otherwise(
    helm: Helm, values: dict[str, Any], images: dict[str, str]
) -> None:
    found = container(helm, values)
    flags = dict(arg.removeprefix("--").split("=", 1) for arg in found["args"])
    given = {
        "operator": found["image"],
        **{name: flags.get(f"{name}-image") for name in images if name != "operator"},
    }
    assert {name: given[name] for name in images} == images


def test_the_crds_are_those_that_are_generated_and_survive_the_release(helm: Helm) -> None:
    rendered = {
        o["metadata"]["name"]: o for key, o in render(helm).items() if key[0] == "CustomResourceDefinition"
    }
    files = sorted((CHART / "files" / "crds").glob("*.yaml"))
    generated = {crd["metadata"]["name"]: crd for crd in (yaml.safe_load(f.read_text()) for f in files)}
    assert rendered.keys() == generated.keys()
    assert len(generated) == 2
    for name, crd in generated.items():
        assert rendered[name]["spec"] == crd["spec"]
        annotations = rendered[name]["metadata"]["annotations"]
        assert annotations["helm.sh/resource-policy"] == "keep"
        assert annotations.items() >= crd["metadata"]["annotations"].items()
    without = render(helm, {"crds": {"install": False}})
    assert not [key for key in without if key[0] == "CustomResourceDefinition"]


def test_nothing_says_keep_that_annotations_of_the_user_could_overrule(helm: Helm) -> None:
    found = render(helm, {"crds": {"annotations": {"helm.sh/resource-policy": "delete"}}})
    crds = [each for key, each in found.items() if key[0] == "CustomResourceDefinition"]
    assert {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in crds} == {"keep"}


def test_users_get_llmservices_with_kubernetes_own_roles_and_runtimes_for_reading_only(helm: Helm) -> None:
    found = render(helm)
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    into = {
        name.removeprefix(f"{FULL_NAME}-"): {
            label.removeprefix(prefix) for label in each["metadata"]["labels"] if label.startswith(prefix)
        }
        for (kind, _, name), each in found.items()
        if kind == "ClusterRole" and not name.endswith("manager-role")
    }
    assert into == {
        "llmservice-admin-role": {"admin"},
        "llmservice-editor-role": {"admin", "edit"},
        "llmservice-viewer-role": {"admin", "edit", "view"},
        "inferenceruntime-admin-role": set(),
        "inferenceruntime-editor-role": set(),
        "inferenceruntime-viewer-role": {"admin", "edit", "view"},
    }
    admin, editor, viewer = (
        found["ClusterRole", "", f"{FULL_NAME}-llmservice-{role}-role"]["rules"]
        for role in ("admin", "editor", "viewer")
    )
    status = {"apiGroups": ["serving.noctaya.io"], "resources": ["llmservices/status"], "verbs": ["get"]}
    assert [rules[1] for rules in (admin, editor, viewer)] == [status] * 3
    assert admin[0]["verbs"] == ["*"]
    assert set(editor[0]["verbs"]) == {"create", "delete", "get", "list", "patch", "update", "watch"}
    assert set(viewer[0]["verbs"]) == {"get", "list", "watch"}
    alone = render(helm, {"rbac": {"userRoles": {"aggregate": False}}})
    assert prefix not in str(alone)


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("noctaya", {}, "noctaya"),
        ("my-noctaya", {}, "my-noctaya"),
        ("prod", {}, "prod-noctaya"),
        ("prod", {"nameOverride": "llm"}, "prod-llm"),
        ("prod", {"fullnameOverride": "whole"}, "whole"),
    ],
)
def test_names_begin_with_release_and_chart(
    helm: Helm, release: str, values: dict[str, Any], name: str
) -> None:
    found = render(helm, values, release=release)
    assert ("Deployment", "noctaya-system", f"{name}-controller-manager") in found
    assert ("ClusterRole", "", f"{name}-manager-role") in found
    assert ("ClusterRole", "", f"{name}-llmservice-editor-role") in found
    assert ("Role", "noctaya-system", f"{name}-leader-election") in found


def test_several_operators_prefer_different_nodes_and_one_of_them_stays(helm: Helm) -> None:
    pod = deployment(helm)["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"] == deployment(helm)["spec"]["selector"]
    budget = render(helm)["PodDisruptionBudget", "noctaya-system", f"{FULL_NAME}-controller-manager"]
    assert budget["spec"]["minAvailable"] == 1


def test_traces_are_switched_on_by_their_endpoint_alone(helm: Helm) -> None:
    assert "env" not in container(helm, {"tracing": {"samplingRatio": 0.5}})
    env = {
        entry["name"]: entry["value"] for entry in container(helm, MATRIX["operator"]["everything"])["env"]
    }
    assert env == {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.observability:4318",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "NOCTAYA_TRACES_HEADERS_FILE": "/var/run/noctaya/traces/headers",
        "LANG": "C",
    }


def test_headers_for_the_collector_are_a_secret_s_and_handed_on_by_its_name(helm: Helm) -> None:
    alone: Object = {"tracing": {"headersSecret": "collector"}}
    assert "volumes" not in deployment(helm, alone)["spec"]["template"]["spec"]
    assert "--traces-headers-secret=collector" not in container(helm, alone)["args"]
    traced: Object = {"tracing": {"endpoint": "http://collector:4318", "headersSecret": "collector"}}
    pod = deployment(helm, traced)["spec"]["template"]["spec"]
    (volume,) = pod["volumes"]
    assert volume["secret"]["secretName"] == "collector"
    assert volume["secret"]["optional"] is True
    assert pod["securityContext"]["fsGroup"] == 65532, "who reads it is no root"
    (mount,) = container(helm, traced)["volumeMounts"]
    settings = load_settings(container(helm, traced)["args"])
    environ = {each["name"]: each["value"] for each in container(helm, traced)["env"]}
    assert settings.defaults(environ).traces_headers_secret == "collector"
    assert environ["NOCTAYA_TRACES_HEADERS_FILE"] == f"{mount['mountPath']}/headers"


def test_the_charts_have_the_version_of_what_they_install() -> None:
    for name in NAMES:
        chart = yaml.safe_load((CHARTS / name / "Chart.yaml").read_text())
        assert chart["version"] == chart["appVersion"] == version("noctaya-operator"), name


def test_the_images_are_the_operator_s_own_defaults(helm: Helm) -> None:
    settings = load_settings(container(helm)["args"])
    assert settings.defaults().images == Images()
