"""The ScaledObject, the demand Secret, and the Services they point at."""

from __future__ import annotations

import base64

import pytest
from noctaya_operator.kube.objects import Object
from noctaya_operator.render.demand_auth import check_demand_secret, new_demand_token
from pydantic import ValidationError
from samples import TOKEN, objects, plan, rendered, runtime, service


def scaled(**scaling: object) -> Object:
    return objects(plan(service(scaling=scaling)))["ScaledObject/chat"]


def test_k1_the_whole_object() -> None:
    assert scaled(max=3, target=4, scaleDownStabilization="90s") == {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {
            "name": "chat",
            "namespace": "team",
            "labels": {
                "app.kubernetes.io/name": "chat",
                "app.kubernetes.io/managed-by": "noctaya",
                "serving.noctaya.io/llmservice": "chat",
            },
        },
        "spec": {
            "scaleTargetRef": {"name": "chat"},
            "minReplicaCount": 0,
            "maxReplicaCount": 3,
            "pollingInterval": 5,
            "cooldownPeriod": 90,
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 90}}
                }
            },
            "triggers": [
                {
                    "type": "external-push",
                    "metadata": {
                        "scalerAddress": "chat-scaler.team.svc:9090",
                        "metricName": "pending",
                        "targetValue": "4",
                    },
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("given", "rendered_ref"),
    [
        ({"name": "mtls"}, {"name": "mtls", "kind": "TriggerAuthentication"}),
        (
            {"name": "mtls", "kind": "ClusterTriggerAuthentication"},
            {"name": "mtls", "kind": "ClusterTriggerAuthentication"},
        ),
    ],
)
def test_k2_mutual_tls_names_kedas_credentials(given: Object, rendered_ref: Object) -> None:
    tls = {"serverSecretName": "tls", "authenticationRef": given}
    (trigger,) = scaled(externalScaler={"tls": tls})["spec"]["triggers"]
    assert trigger["authenticationRef"] == rendered_ref
    (plain,) = scaled()["spec"]["triggers"]
    assert "authenticationRef" not in plain


@pytest.mark.parametrize(
    "tls",
    [
        {"serverSecretName": "", "authenticationRef": {"name": "a"}},
        {"serverSecretName": "tls", "authenticationRef": {"name": ""}},
        {"serverSecretName": "tls"},
        {"serverSecretName": "tls", "authenticationRef": {"name": "a", "kind": "Secret"}},
    ],
)
def test_k3_half_a_tls_is_no_service(tls: Object) -> None:
    with pytest.raises(ValidationError):
        service(scaling={"externalScaler": {"tls": tls}})


@pytest.mark.parametrize("text", ["-1s", "1.5s", "61m", "abc"])
def test_k5_a_stabilization_keda_can_not_have_is_no_service(text: str) -> None:
    with pytest.raises(ValidationError):
        service(scaling={"scaleDownStabilization": text})


def test_k6_zero_seconds_stay_zero() -> None:
    spec = scaled(scaleDownStabilization="0s")["spec"]
    assert spec["cooldownPeriod"] == 0
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 0


def test_o6_a_service_without_its_weights_is_paused_at_zero() -> None:
    planned = plan(service(scaling={"min": 1}))
    held = objects(planned, hold_at_zero=True)["ScaledObject/chat"]
    assert held["metadata"].pop("annotations") == {"autoscaling.keda.sh/paused-replicas": "0"}
    assert held == objects(planned)["ScaledObject/chat"]


def test_o5_only_the_scaled_object_waits_for_the_scaler() -> None:
    waiting = [name for name, each in rendered(plan(gateways=2)).items() if each.awaits_scaler]
    assert waiting == ["ScaledObject/chat"]


def test_r23_the_demand_secret_is_for_several_gateways() -> None:
    assert "Secret/chat-demand-auth" not in objects(plan())
    secret = objects(plan(gateways=2))["Secret/chat-demand-auth"]
    assert secret["type"] == "Opaque"
    assert base64.b64decode(secret["data"]["token"]).decode() == TOKEN
    check_demand_secret(secret)


def test_r23_a_new_token_is_43_characters_and_never_the_same() -> None:
    tokens = {new_demand_token() for _ in range(20)}
    assert len(tokens) == 20
    assert {len(token) for token in tokens} == {43}


def test_s2_a_secret_may_hold_two_tokens_during_rotation() -> None:
    text = f" {'a' * 32}\n\n{'b' * 40}\n"
    check_demand_secret({"data": {"token": base64.b64encode(text.encode()).decode()}})


def test_r24_services_are_found_by_label_and_port_whatever_the_engines_port_is_called() -> None:
    on = runtime(container={"port": {"name": "api", "containerPort": 9000}})
    found = objects(plan(on=on, gateways=2))
    for name in ("chat-backend", "chat", "chat-scaler"):
        service_object = found[f"Service/{name}"]
        assert service_object["metadata"]["labels"]["serving.noctaya.io/llmservice"] == "chat"
        assert "http" in [port["name"] for port in service_object["spec"]["ports"]]
    (port,) = found["Service/chat-backend"]["spec"]["ports"]
    assert port == {"name": "http", "port": 80, "targetPort": "api", "protocol": "TCP"}


def test_no_pod_is_scraped_twice() -> None:
    (port,) = objects(plan())["Service/chat-pods"]["spec"]["ports"]
    assert port["name"] != "http"


def test_prewarm_pods_are_nobodys_backend() -> None:
    found = objects(plan(service(cache={"prewarm": True})))
    labels = found["Job/chat-prewarm"]["spec"]["template"]["metadata"]["labels"]
    for name in ("Service/chat-backend", "Service/chat-pods", "Service/chat"):
        assert not found[name]["spec"]["selector"].items() <= labels.items()
