"""Each alert about gateways and scalers fires when its fault is caused in the running system."""

from __future__ import annotations

from noctaya_monitoring.clients import clients
from noctaya_monitoring.fleet import MODELS, PAIRS, Fleet
from noctaya_monitoring.prometheus import Prometheus

WITHIN = 90.0
"""Seconds; each takes under 30 on an idle machine."""


def silent_about(prometheus: Prometheus, alert: str, service: str) -> bool:
    return all(each.get("llmservice") != service for each in prometheus.firing(alert))


def test_a_full_queue(prometheus: Prometheus, fleet: Fleet) -> None:
    url = fleet.services["full"].url
    with clients(url, 1, pause=0.1), clients(url, 2, pause=0.2) as refused:
        prometheus.await_firing("NoctayaQueueFull", within=WITHIN, namespace=MODELS, llmservice="full")
        assert any(429 in client.statuses for client in refused)
    assert silent_about(prometheus, "NoctayaQueueFull", "chat")


def test_nobody_listens_to_a_scaler(prometheus: Prometheus) -> None:
    prometheus.await_firing("NoctayaScalerNotConnected", within=WITHIN, namespace=MODELS, llmservice="deaf")
    assert silent_about(prometheus, "NoctayaScalerNotConnected", "chat")


def test_demand_that_nobody_hears_and_requests_that_wait_in_vain(
    prometheus: Prometheus, fleet: Fleet
) -> None:
    """The timeouts come all at once, as those of one cold start do: the series begins with its last value."""
    with clients(fleet.services["deaf"].url, 5, pause=60.0):
        prometheus.await_firing("NoctayaDemandUnheard", within=WITHIN, namespace=MODELS, llmservice="deaf")
        prometheus.await_firing(
            "NoctayaActivationTimeouts", within=WITHIN, namespace=MODELS, llmservice="deaf"
        )
    assert silent_about(prometheus, "NoctayaDemandUnheard", "chat")


def test_cold_starts_that_take_too_long(prometheus: Prometheus, fleet: Fleet) -> None:
    """The operator sees the same cold starts and says which phase has become slower than it was."""
    late = fleet.services["late"]
    assert late.keda is not None
    late.keda.load_seconds = 0.0
    usual = 'sum(noctaya_activation_phase_seconds_count{llmservice="late",phase="total"})'
    with clients(late.url, 1, pause=3.0):
        prometheus.await_value(usual, lambda count: count >= 2, within=WITHIN)
        late.keda.load_seconds = 12.0
        prometheus.await_firing("NoctayaActivationSlow", within=WITHIN, namespace=MODELS, llmservice="late")
        slower = prometheus.await_firing(
            "NoctayaActivationSlowerThanUsual", within=WITHIN, namespace=MODELS, llmservice="late"
        )
    assert slower["phase"] == "load"


def test_a_certificate_near_its_end(prometheus: Prometheus) -> None:
    prometheus.await_firing("NoctayaCertificateExpires", within=WITHIN, namespace=MODELS, llmservice="sealed")
    assert len(prometheus.firing("NoctayaCertificateExpires")) == 1


def test_an_aggregate_scaler_that_is_gone(prometheus: Prometheus, fleet: Fleet) -> None:
    pair = fleet.services["pair"]
    assert pair.scaler is not None
    pair.scaler[1].child.kill()
    with clients(pair.url, 1, pause=1.0):
        prometheus.await_firing("NoctayaDemandUndelivered", within=WITHIN, namespace=PAIRS, llmservice="pair")
