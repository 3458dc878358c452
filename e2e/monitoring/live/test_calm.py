"""What the ServiceMonitors find, with which labels; and that alerts keep silent where there is no fault."""

from __future__ import annotations

from typing import Any

from noctaya_apiserver.client import wait_for
from noctaya_monitoring.fleet import METRICS, MODELS, PAIRS, SYSTEM, Fleet
from noctaya_monitoring.prometheus import Prometheus

ALONE = ("chat", "late", "full", "deaf", "sealed")
EXPECTED = {
    *((MODELS, name, "http", name) for name in ALONE),
    (PAIRS, "pair", "http", "pair"),
    (PAIRS, "pair-scaler", "http", "pair"),
    (SYSTEM, METRICS, "metrics", ""),
}
"""Namespace, Service, port and service of what is scraped while no model runs."""
OF_A_FAULT = {"NoctayaScalerNotConnected", "NoctayaCertificateExpires"}
"""Two of the services are there for these."""


def identity(target: dict[str, Any]) -> tuple[str, str, str, str]:
    labels = target["labels"]
    return labels["namespace"], labels["service"], labels["endpoint"], labels.get("llmservice", "")


def test_the_service_monitors_find_every_gateway_scaler_and_operator(
    prometheus: Prometheus, fleet: Fleet
) -> None:
    def found() -> bool:
        targets = [
            each for each in prometheus.targets() if not each["labels"]["service"].endswith("-backend")
        ]
        healthy = all(each["health"] == "up" for each in targets)
        return healthy and {identity(each) for each in targets} == EXPECTED

    wait_for(found, what=f"{EXPECTED} scraped")
    pods = {each["labels"]["pod"] for each in prometheus.targets()}
    assert fleet.services["pair"].gateways.keys() | fleet.operators.keys() <= pods


def test_every_series_of_a_gateway_says_whose_it_is(prometheus: Prometheus) -> None:
    wait_for(lambda: prometheus.values("noctaya_gateway_demand"), what="the demand of gateways")
    counted = prometheus.values("count by (namespace, llmservice) (noctaya_gateway_demand)")
    alone = {f"llmservice={name},namespace={MODELS}": 1 for name in ALONE}
    assert counted == alone | {f"llmservice=pair,namespace={PAIRS}": 2}
    assert not prometheus.values('{__name__=~"noctaya_gateway_.+",llmservice=""}')
    assert not prometheus.values('{__name__=~"noctaya_gateway_.+",exported_namespace!=""}')


def test_the_operators_series_keep_the_labels_of_the_services_they_are_about(
    prometheus: Prometheus,
) -> None:
    wait_for(
        lambda: prometheus.values('sum(noctaya_operator_services{phase="ScaledToZero"})') == {"": 6.0},
        what="six services at zero",
    )


def test_prometheus_understands_every_alert_and_none_fires_without_its_fault(prometheus: Prometheus) -> None:
    """No operator here elects a leader, which is how one replica is installed: that is no fault."""
    wait_for(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()), what="every rule evaluated")
    prometheus.await_firing("NoctayaScalerNotConnected", within=60.0, llmservice="deaf")
    firing = {rule["name"] for rule in prometheus.rules() if prometheus.firing(rule["name"])}
    assert firing <= OF_A_FAULT
    unheard = {each["llmservice"] for each in prometheus.firing("NoctayaScalerNotConnected")}
    assert unheard <= {"deaf", "sealed"}
