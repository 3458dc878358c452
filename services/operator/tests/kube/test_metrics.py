"""Metric names dashboards look for."""

from __future__ import annotations

from fake_apiserver import FakeApiServer
from noctaya_operator.kube.errors import ServerUnavailable
from noctaya_operator.kube.metrics import KubeMetrics
from noctaya_operator.kube.resources import PODS
from prometheus_client import CollectorRegistry, generate_latest

NAMES = [
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_retries_total",
    "workqueue_queue_duration_seconds_bucket",
    "workqueue_work_duration_seconds_bucket",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_time_seconds_bucket",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
    "leader_election_master_status",
]


def test_the_names_are_controller_runtimes() -> None:
    registry = CollectorRegistry()
    metrics = KubeMetrics(registry)
    metrics.queue("llmservice")
    metrics.controller("llmservice").started(4)
    metrics.leading("lock", True)
    text = generate_latest(registry).decode()
    assert [name for name in NAMES if f"\n{name}{{" not in text] == []
    assert 'leader_election_master_status{name="lock"} 1.0' in text
    assert 'controller_runtime_max_concurrent_reconciles{controller="llmservice"} 4.0' in text


async def test_requests_are_counted_by_code_method_verb_and_kind(fake_apiserver: FakeApiServer) -> None:
    registry = CollectorRegistry()
    metrics = KubeMetrics(registry)
    client = fake_apiserver.client(observe=metrics.request_done)
    await client.list(PODS)
    host = fake_apiserver.url.removeprefix("http://")
    labels = {"code": "200", "method": "GET", "host": host}
    assert registry.get_sample_value("rest_client_requests_total", labels) == 1
    labels = {"verb": "list", "resource": "pods", "code": "200"}
    assert registry.get_sample_value("kube_client_requests_total", labels) == 1


def test_failures_and_events_are_counted() -> None:
    registry = CollectorRegistry()
    metrics = KubeMetrics(registry)
    metrics.reflector_failed(PODS, ServerUnavailable(0, "Timeout"))
    metrics.event_result("written")
    labels = {"resource": "pods", "reason": "Timeout"}
    assert registry.get_sample_value("kube_reflector_failures_total", labels) == 1
    assert registry.get_sample_value("kube_events_total", {"result": "written"}) == 1
