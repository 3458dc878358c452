"""What the ServiceMonitors find, with which labels; and that alerts keep silent where there is no fault."""

from __future__ import annotations

from typing import Any

from noctaya_apiserver.client import wait_for
from noctaya_monitoring.fleet import METRICS, MODELS, PAIRS, SYSTEM, Fleet
from noctaya_monitoring.prometheus import Prometheus

WITHIN = 90.0
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

    wait_for(found, within=WITHIN, what=f"{EXPECTED} scraped")
    pods = {each["labels"]["pod"] for each in prometheus.targets()}
    assert fleet.services["pair"].gateways.keys() | fleet.operators.keys() <= pods


def test_every_series_of_a_gateway_says_whose_it_is(prometheus: Prometheus) -> None:
    alone = {f"llmservice={name},namespace={MODELS}": 1 for name in ALONE}
    expected = alone | {f"llmservice=pair,namespace={PAIRS}": 2}

    def counted() -> bool:
        found = prometheus.values("count by (namespace, llmservice) (noctaya_gateway_demand)")
        return found == expected

    wait_for(counted, within=WITHIN, what=f"gateways as {expected}")
    assert not prometheus.values('{__name__=~"noctaya_gateway_.+",llmservice=""}')
    assert not prometheus.values('{__name__=~"noctaya_gateway_.+",exported_namespace!=""}')


def test_the_operators_count_the_services_that_there_are(prometheus: Prometheus) -> None:
    at_zero = 'sum(noctaya_operator_services{phase="ScaledToZero"})'
    prometheus.await_value(at_zero, lambda count: count >= len(ALONE) + 1, within=WITHIN)


def test_prometheus_understands_every_alert_and_none_goes_on_without_its_fault(
    prometheus: Prometheus,
) -> None:
    """No operator here elects a leader, which is how one replica is installed: that is no fault."""

    def evaluated() -> bool:
        return all(rule["health"] == "ok" for rule in prometheus.rules())

    def firing() -> set[str]:
        return {rule["name"] for rule in prometheus.rules() if prometheus.firing(rule["name"])}

    wait_for(evaluated, within=WITHIN, what="every rule evaluated")
    prometheus.await_firing("NoctayaScalerNotConnected", within=WITHIN, llmservice="deaf")
    wait_for(lambda: firing() <= OF_A_FAULT, within=WITHIN, what=f"no more alerts than {OF_A_FAULT}")
    wait_for(lambda: unheard(prometheus) <= {"deaf", "sealed"}, within=WITHIN, what="those who are heard")


def unheard(prometheus: Prometheus) -> set[str]:
    """Services that the alert says KEDA does not listen to."""
    return {each["llmservice"] for each in prometheus.firing("NoctayaScalerNotConnected")}
