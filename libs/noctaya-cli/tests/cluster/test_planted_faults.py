"""A newcomer finds the cause of a planted fault with one command, whichever of the three it is."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from noctaya_cli.main import app
from typer.testing import CliRunner

from . import objects
from .conftest import NOW
from .fake_api import FakeApi

Command = Callable[..., str]


@pytest.fixture
def told(api: FakeApi, tmp_path: Path) -> Command:
    """What a command says, in one line so that folding doesn't matter."""
    file = api.kubeconfig(tmp_path)

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--kubeconfig", str(file)])
        assert result.exit_code in {0, 1}, result.output
        return " ".join(result.output.split())

    return run


def put(api: FakeApi, service: Any) -> None:
    api.collections[objects.ALL_SERVICES] = api.collections[objects.OWN_SERVICES] = [service]
    api.objects[f"{objects.OWN_SERVICES}/chat"] = service


def degraded(reason: str, message: str) -> Any:
    return objects.llm_service(
        conditions=[
            objects.condition("Ready", "False", reason, message),
            objects.condition("Degraded", "True", reason, message),
            objects.condition("AutoscalingReady", "True", "ScaledObjectApplied"),
        ],
        phase="Degraded",
    )


def wrong_storage_class(api: FakeApi) -> None:
    service = degraded("StorageClassMissing", 'storageclass "fast" not found')
    service["spec"]["cache"] = {"storageClassName": "fast"}
    put(api, service)


def keda_down(api: FakeApi) -> None:
    api.collections[objects.DEPLOYMENTS] = [objects.operator(), objects.keda(ready=0)]
    api.texts[objects.metrics_path(objects.gateway_pod())] = objects.metrics(demand=1, held=1, streams=0)


def bad_image(api: FakeApi) -> None:
    put(
        api, degraded("ImagePullFailed", "container serving: image registry.example.com/vllm:nope: not found")
    )


def expired_certificate(api: FakeApi) -> None:
    service = objects.llm_service(
        conditions=[
            objects.condition("Degraded", "False", "Inactive"),
            objects.condition(
                "AutoscalingReady",
                "False",
                "ScaledObjectNotReady",
                "Triggers defined in ScaledObject are not working",
            ),
        ]
    )
    service["spec"]["scaling"]["externalScaler"] = {"tls": {"serverSecretName": "scaler-tls"}}
    put(api, service)
    ended = NOW - timedelta(days=3)
    pem = trustme.CA().issue_cert("chat-scaler.models.svc", not_after=ended).cert_chain_pems[0].bytes()
    secret = {"data": {"tls.crt": base64.b64encode(pem).decode()}}
    api.objects["/api/v1/namespaces/models/secrets/scaler-tls"] = secret


def full_queue(api: FakeApi) -> None:
    service = objects.llm_service(phase="Loading")
    service["spec"]["endpoint"] = {"maxQueue": 8}
    put(api, service)
    refused = 'noctaya_gateway_rejections_total{reason="queue_full"} 5.0\n'
    api.texts[objects.metrics_path(objects.gateway_pod())] = objects.metrics(demand=8, held=8) + refused


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fault, and for each command the cause and the remedy it shows; nothing where it can't know."""

    fault: Callable[[FakeApi], None]
    doctor: tuple[str, str]
    explain: tuple[str, str]
    status: str


FAULTS = {
    "wrong StorageClass": Planted(
        fault=wrong_storage_class,
        doctor=(
            "✖ storage models/chat asks for StorageClass fast, which doesn't exist",
            "→ Set spec.cache.storageClassName to one that does: standard.",
        ),
        explain=(
            "✖ StorageClassMissing (Degraded, for",
            "→ Set `spec.cache.storageClassName` to one of `kubectl get storageclass`",
        ),
        status='StorageClassMissing: storageclass "fast" not found',
    ),
    "KEDA down": Planted(
        fault=keda_down,
        doctor=(
            "✖ keda keda/keda-operator has no ready Pod, so nothing scales from zero",
            "→ kubectl -n keda describe deployment keda-operator",
        ),
        explain=(
            "✖ KedaNotListening (Gateway) demand is 1, no replica is there, and KEDA has no stream open",
            "→ `noctaya doctor` says whether KEDA runs",
        ),
        status="KedaNotListening: demand is 1, no replica is there, and KEDA has no stream open",
    ),
    "bad image": Planted(
        fault=bad_image,
        doctor=(
            "✖ services models/chat: ImagePullFailed: container serving: image registry.example.com/vllm",
            "→ Correct `container.image` of the runtime",
        ),
        explain=(
            "image registry.example.com/vllm:nope: not found",
            "→ Correct `container.image` of the runtime",
        ),
        status="ImagePullFailed: container serving: image registry.example.com/vllm:nope: not found",
    ),
    "expired certificate": Planted(
        fault=expired_certificate,
        doctor=(
            "✖ certificates models/scaler-tls, the certificate of chat's scaler, expired",
            "→ Renew it; it is reloaded by itself.",
        ),
        explain=(
            "✖ CertificateUnusable (Certificate) models/scaler-tls, the certificate of chat's scaler, ex",
            "→ Renew the Secret of `spec.scaling.externalScaler.tls.serverSecretName`",
        ),
        status="ScaledObjectNotReady: Triggers defined in ScaledObject are not working",
    ),
    "full queue": Planted(
        fault=full_queue,
        doctor=(
            "✖ demand models/chat: queue full: all 8 slots of chat-gateway-1 are taken",
            "→ Further requests are refused with 429 `queue_full`. Raise `spec.scaling.max`",
        ),
        explain=(
            "✖ QueueFull (Gateway) all 8 slots of the gateway are taken, 5 requests refused so far",
            "→ Raise `spec.scaling.max` if replicas are busy",
        ),
        status="QueueFull: all 8 slots of the gateway are taken, 5 requests refused so far",
    ),
}
PLANTED = pytest.mark.parametrize("planted", FAULTS.values(), ids=FAULTS)


@PLANTED
def test_doctor_names_the_cause_and_the_remedy(api: FakeApi, told: Command, planted: Planted) -> None:
    planted.fault(api)
    page = told("doctor")
    assert [words for words in planted.doctor if words not in page] == [], page


@PLANTED
def test_explain_names_the_cause_and_the_remedy(api: FakeApi, told: Command, planted: Planted) -> None:
    planted.fault(api)
    page = told("explain", "chat")
    assert [words for words in planted.explain if words not in page] == [], page


@PLANTED
def test_status_names_what_the_service_knows_itself(api: FakeApi, told: Command, planted: Planted) -> None:
    planted.fault(api)
    page = told("status")
    assert planted.status in page


def test_explain_tells_of_a_storage_class_that_is_missing_before_any_pod_wants_it(
    api: FakeApi, told: Command
) -> None:
    service = objects.llm_service()
    service["spec"]["cache"] = {"storageClassName": "fast"}
    put(api, service)
    page = told("explain", "chat")
    assert "✖ StorageClassMissing (Storage) there is no StorageClass fast" in page
    assert "→ Set `spec.cache.storageClassName`" in page
    api.forbidden.add("/storageclasses/")
    assert "Nothing is wrong." in told("explain", "chat"), "who may not look is told once a Pod waits"
    api.forbidden.clear()
    api.objects["/apis/storage.k8s.io/v1/storageclasses/fast"] = {"metadata": {"name": "fast"}}
    assert "Nothing is wrong." in told("explain", "chat")


def test_a_service_that_is_being_deleted_has_no_trouble(api: FakeApi, told: Command) -> None:
    bad_image(api)
    api.objects[f"{objects.OWN_SERVICES}/chat"]["metadata"]["deletionTimestamp"] = "2026-11-30T09:59:00Z"
    assert "chat Deleting 0/3" in told("status")
    page = told("explain", "chat")
    assert "models/chat: Deleting" in page
    assert "Nothing is wrong." in page


def test_a_healthy_service_has_none_of_it(told: Command) -> None:
    assert "Nothing is wrong." in told("explain", "chat")
    page = told("doctor")
    assert [planted.doctor[0] for planted in FAULTS.values() if planted.doctor[0] in page] == []


def test_demand_that_a_running_replica_serves_is_no_trouble(api: FakeApi, told: Command) -> None:
    put(api, objects.llm_service(replicas=1, phase="Ready"))
    api.texts[objects.metrics_path(objects.gateway_pod())] = objects.metrics(demand=3, streams=0)
    assert "Nothing is wrong." in told("explain", "chat")


def test_keda_that_does_not_listen_is_told_before_anybody_waits_for_it(api: FakeApi, told: Command) -> None:
    api.texts[objects.metrics_path(objects.gateway_pod())] = objects.metrics(demand=0, streams=0)
    assert "✖ KedaNotListening (Gateway) KEDA has no stream open to this service" in told("explain", "chat")


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Prewarming"},
        {"keep": {"state": "Asleep", "replicas": 0}},
        {"phase": "Ready", "replicas": 1},
    ],
    ids=["weights are downloaded", "asleep", "a replica runs"],
)
def test_keda_may_be_silent_while_nothing_is_to_be_woken(
    api: FakeApi, told: Command, status: dict[str, Any]
) -> None:
    put(api, objects.llm_service(**status))
    api.texts[objects.metrics_path(objects.gateway_pod())] = objects.metrics(demand=0, streams=0)
    assert "Nothing is wrong." in told("explain", "chat")


def test_with_an_aggregate_scaler_its_streams_count(api: FakeApi, told: Command) -> None:
    scaler = objects.gateway_pod()
    scaler["metadata"] |= {
        "name": "chat-scaler-1",
        "labels": {"app.kubernetes.io/managed-by": "noctaya", "serving.noctaya.io/scaler": "chat"},
    }
    api.collections["/api/v1/namespaces/models/pods"].append(scaler)
    api.texts[objects.metrics_path(objects.gateway_pod())] = objects.metrics(demand=3, streams=0)
    assert "Nothing is wrong." in told("explain", "chat"), "a scaler that can't be asked is no evidence"
    api.texts[objects.metrics_path(scaler, 9091)] = objects.metrics(streams=1)
    assert "Nothing is wrong." in told("explain", "chat")
    api.texts[objects.metrics_path(scaler, 9091)] = objects.metrics(streams=0)
    assert "KedaNotListening" in told("explain", "chat")
