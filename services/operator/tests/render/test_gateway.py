"""The gateway's Deployment, budget and files; the aggregate scaler beside several of them."""

from __future__ import annotations

import pytest
from noctaya_operator.kube.objects import Object
from samples import env_of, gateway, objects, plan, pod_of, service

TLS = {"externalScaler": {"tls": {"serverSecretName": "tls", "authenticationRef": {"name": "mtls"}}}}


def container(deployment: Object) -> Object:
    found: Object = pod_of(deployment)["containers"][0]
    return found


def names_of(entries: list[Object]) -> list[str]:
    return [entry["name"] for entry in entries]


def test_r15_replicas_are_the_operators() -> None:
    assert gateway(plan())["spec"]["replicas"] == 1
    assert gateway(plan(gateways=3))["spec"]["replicas"] == 3


def test_r17_the_bound_reaches_gateway_and_scaler() -> None:
    for given, bound in ((service(), "100"), (service(endpoint={"maxQueue": 7}), "7")):
        found = objects(plan(given, gateways=2))
        assert env_of(container(found["Deployment/chat-gateway"]))["NOCTAYA_MAX_QUEUE"] == bound
        assert env_of(container(found["Deployment/chat-scaler"]))["NOCTAYA_MAX_GATEWAY_DEMAND"] == bound


@pytest.mark.parametrize(
    ("given", "rendered"),
    [
        (None, None),
        ({}, None),
        ({"requests": {}}, None),
        ({"requests": {"cpu": "0.1"}}, {"requests": {"cpu": "100m"}}),
        ({"limits": {"memory": "1024Ki"}}, {"limits": {"memory": "1Mi"}}),
        (
            {"requests": {"memory": 1024}, "limits": {"cpu": "2"}},
            {"requests": {"memory": "1024"}, "limits": {"cpu": "2"}},
        ),
    ],
)
def test_r18_resources_are_as_asked_and_none_by_default(
    given: Object | None, rendered: Object | None
) -> None:
    endpoint = {} if given is None else {"resources": given}
    assert container(gateway(plan(service(endpoint=endpoint)))).get("resources") == rendered


def test_r19_keys_are_mounted_only_when_asked_for() -> None:
    open_to_all = container(gateway(plan()))
    assert "NOCTAYA_CLIENT_API_KEY_FILE" not in env_of(open_to_all)
    assert "client-auth" not in names_of(open_to_all["volumeMounts"])

    secret = {"authentication": {"secretRef": {"name": "keys", "key": "current"}}}
    locked = gateway(plan(service(endpoint=secret)))
    assert env_of(container(locked))["NOCTAYA_CLIENT_API_KEY_FILE"] == "/var/run/noctaya/client-auth/api-key"
    (volume,) = [each for each in pod_of(locked)["volumes"] if each["name"] == "client-auth"]
    items = [{"key": "current", "path": "api-key"}]
    assert volume["secret"] == {"secretName": "keys", "defaultMode": 0o440, "items": items}


def test_r20_several_gateways_are_spread_and_budgeted() -> None:
    alone, several = objects(plan()), objects(plan(gateways=2))
    assert "affinity" not in pod_of(alone["Deployment/chat-gateway"])
    assert "PodDisruptionBudget/chat-gateway" not in alone
    affinity = pod_of(several["Deployment/chat-gateway"])["affinity"]["podAntiAffinity"]
    (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    selector = several["Deployment/chat-gateway"]["spec"]["selector"]
    assert (term["weight"], term["podAffinityTerm"]["labelSelector"]) == (100, selector)
    assert several["PodDisruptionBudget/chat-gateway"]["spec"] == {"minAvailable": 1, "selector": selector}


def test_r21_one_gateway_answers_keda_itself() -> None:
    found = objects(plan())
    alone = container(found["Deployment/chat-gateway"])
    assert names_of(alone["ports"]) == ["http", "grpc"]
    assert env_of(alone)["NOCTAYA_SCALER_LISTEN_ADDR"] == ":9090"
    assert "NOCTAYA_DEMAND_AGGREGATOR_URL" not in env_of(alone)
    assert "Deployment/chat-scaler" not in found
    scaler = found["Service/chat-scaler"]["spec"]
    assert names_of(scaler["ports"]) == ["grpc"]
    assert scaler["selector"] == found["Deployment/chat-gateway"]["spec"]["selector"]["matchLabels"]


def test_r21_several_gateways_report_to_the_scaler() -> None:
    found = objects(plan(gateways=2))
    one = container(found["Deployment/chat-gateway"])
    assert names_of(one["ports"]) == ["http"]
    assert env_of(one)["NOCTAYA_DEMAND_AGGREGATOR_URL"] == "http://chat-scaler.team.svc:9091/v1/demand"
    assert "NOCTAYA_SCALER_LISTEN_ADDR" not in env_of(one)
    (member,) = [entry for entry in one["env"] if entry["name"] == "NOCTAYA_GATEWAY_ID"]
    assert member["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"
    scaler = found["Service/chat-scaler"]["spec"]
    assert names_of(scaler["ports"]) == ["grpc", "http"]
    assert scaler["selector"] == found["Deployment/chat-scaler"]["spec"]["selector"]["matchLabels"]


def has_tls(deployment: Object) -> bool:
    mounted = "external-scaler-tls" in names_of(pod_of(deployment)["volumes"])
    variables = [name for name in env_of(container(deployment)) if name.startswith("NOCTAYA_SCALER_TLS_")]
    assert len(variables) == 3 * mounted
    return mounted


def test_r22_the_certificate_is_only_where_the_scaler_runs() -> None:
    assert not has_tls(gateway(plan()))
    assert has_tls(gateway(plan(service(scaling=TLS))))
    several = objects(plan(service(scaling=TLS), gateways=2))
    assert not has_tls(several["Deployment/chat-gateway"])
    assert has_tls(several["Deployment/chat-scaler"])


@pytest.mark.parametrize(("gateways", "members"), [(2, 16), (4, 16), (5, 20)])
def test_s1_the_scaler_knows_how_many_members_to_expect(gateways: int, members: int) -> None:
    env = env_of(container(objects(plan(gateways=gateways))["Deployment/chat-scaler"]))
    assert env["NOCTAYA_EXPECTED_GATEWAY_MEMBERS"] == str(gateways)
    assert env["NOCTAYA_MAX_GATEWAY_MEMBERS"] == str(members)


def test_s1_the_scalers_life_does_not_hang_on_its_token() -> None:
    scaler = container(objects(plan(gateways=2))["Deployment/chat-scaler"])
    assert scaler["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 9091}
    assert scaler["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 9091}


def test_l2_settings_of_the_endpoint_reach_the_gateway() -> None:
    cold = {"mode": "reject", "heartbeatInterval": "1500ms", "heartbeats": False}
    given = service(scaling={"activationTimeout": "1h"}, endpoint={"maxQueue": 3, "coldStart": cold})
    env = env_of(container(gateway(plan(given))))
    assert env["NOCTAYA_ACTIVATION_TIMEOUT"] == "1h0m0s"
    assert env["NOCTAYA_COLDSTART_MODE"] == "reject"
    assert env["NOCTAYA_HEARTBEAT_INTERVAL"] == "1.5s"
    assert env["NOCTAYA_HEARTBEATS"] == "false"
    assert env["NOCTAYA_SERVICE_NAME"] == "chat"
    assert "NOCTAYA_HEARTBEATS" not in env_of(container(gateway(plan())))


def test_limits_progress_and_the_access_log_reach_the_gateway_where_they_are_set() -> None:
    limits = {"requestsPerMinute": 60, "concurrentRequests": 4}
    given = service(
        endpoint={
            "coldStart": {"progress": True},
            "authentication": {"secretRef": {"name": "keys", "key": "k"}, "limits": limits},
            "accessLog": "none",
        }
    )
    wanted = {
        "NOCTAYA_PROGRESS": "true",
        "NOCTAYA_ACCESS_LOG": "none",
        "NOCTAYA_KEY_REQUESTS_PER_MINUTE": "60",
        "NOCTAYA_KEY_CONCURRENT_REQUESTS": "4",
    }
    env = env_of(container(gateway(plan(given))))
    assert {name: env[name] for name in wanted} == wanted
    # What is left alone is not written: an upgrade of the operator restarts no gateway for it.
    left_alone = service(
        endpoint={"authentication": {"secretRef": {"name": "keys", "key": "k"}}, "accessLog": "cold"}
    )
    assert not wanted.keys() & env_of(container(gateway(plan(left_alone)))).keys()


def test_g7_the_gateway_finds_the_single_pods() -> None:
    found = objects(plan())
    env = env_of(container(found["Deployment/chat-gateway"]))
    assert env["NOCTAYA_BACKEND_URL"] == "http://chat-backend.team.svc:80"
    assert env["NOCTAYA_BACKEND_ENDPOINTS"] == "dns://chat-pods.team.svc:8000"
    assert found["Service/chat-pods"]["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize(
    ("drain", "told", "grace"), [("2m", "2m0s", 130), ("0s", "0s", 30), ("20.1s", "20.1s", 31)]
)
def test_g8_a_pod_gets_the_time_its_drain_needs(drain: str, told: str, grace: int) -> None:
    deployment = gateway(plan(service(scaling={"drainTimeout": drain})))
    assert env_of(container(deployment))["NOCTAYA_DRAIN_TIMEOUT"] == told
    assert pod_of(deployment)["terminationGracePeriodSeconds"] == grace


def test_g8_a_rollout_is_never_without_a_gateway() -> None:
    rolling = {"maxSurge": "25%", "maxUnavailable": 0}
    assert gateway(plan())["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}


def test_g9_a_doomed_activation_is_told_by_a_file() -> None:
    deployment = gateway(plan())
    file = env_of(container(deployment))["NOCTAYA_ACTIVATION_FAILURE_FILE"]
    (mount,) = [each for each in container(deployment)["volumeMounts"] if file.startswith(each["mountPath"])]
    (volume,) = [each for each in pod_of(deployment)["volumes"] if each["name"] == mount["name"]]
    found = {
        f"{mount['mountPath']}/{item['path']}": item["fieldRef"]["fieldPath"]
        for item in volume["downwardAPI"]["items"]
    }
    assert found == {
        file: "metadata.annotations['serving.noctaya.io/activation-failure']",
        env_of(container(deployment))["NOCTAYA_PREWARMING_FILE"]: (
            "metadata.annotations['serving.noctaya.io/prewarming']"
        ),
    }


def test_t1_traces_say_which_service_they_are_of() -> None:
    given = (
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        ("OTEL_RESOURCE_ATTRIBUTES", "env=test"),
    )
    found = objects(plan(gateways=2, tracing=given))
    for name in ("Deployment/chat-gateway", "Deployment/chat-scaler"):
        env = env_of(container(found[name]))
        assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
        attributes = "env=test,k8s.namespace.name=team,noctaya.llmservice=chat"
        assert env["OTEL_RESOURCE_ATTRIBUTES"] == attributes


def test_headers_for_the_collector_are_mounted_if_their_secret_is_there() -> None:
    given = (("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),)
    found = objects(plan(gateways=2, tracing=given, traces_headers_secret="collector"))
    for name in ("Deployment/chat-gateway", "Deployment/chat-scaler"):
        file = env_of(container(found[name]))["NOCTAYA_TRACES_HEADERS_FILE"]
        (mount,) = [
            each for each in container(found[name])["volumeMounts"] if file.startswith(each["mountPath"])
        ]
        (volume,) = [each for each in pod_of(found[name])["volumes"] if each["name"] == mount["name"]]
        assert volume["secret"] == {
            "secretName": "collector",
            "defaultMode": 0o440,
            "items": [{"key": "headers", "path": "headers"}],
            "optional": True,
        }
        assert mount == {"name": volume["name"], "mountPath": "/var/run/noctaya/traces", "readOnly": True}


def test_without_a_collector_nothing_of_traces_is_rendered() -> None:
    for name, each in objects(plan(gateways=2)).items():
        if name.startswith("Deployment/"):
            assert "OTEL" not in str(each)
