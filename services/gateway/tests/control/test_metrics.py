from __future__ import annotations

from noctaya_api.process.metrics import render
from noctaya_gateway.metrics import WAIT_BUCKETS, GatewayMetrics
from prometheus_client import CollectorRegistry


def text(metrics: GatewayMetrics) -> list[str]:
    registry = CollectorRegistry()
    registry.register(metrics)
    lines = render(registry)[0].decode().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_g6_of_contracts_labelled_counters_are_absent_until_first_use() -> None:
    lines = text(GatewayMetrics())
    assert not [line for line in lines if "{" in line and "_bucket" not in line]
    assert "noctaya_gateway_activation_wait_seconds_count 0.0" in lines


def test_g6_of_contracts_names_and_labels_of_the_counters() -> None:
    metrics = GatewayMetrics()
    metrics.response(200)
    metrics.response(200)
    metrics.response(503)
    metrics.rejection("queue_full")
    metrics.report("success")
    metrics.upstream_error("connect")
    metrics.upstream_cut()
    metrics.disconnect("held")
    metrics.reconnect("probe")
    metrics.activation("ready")
    metrics.replay()
    assert {
        'noctaya_gateway_requests_total{code="200"} 2.0',
        'noctaya_gateway_requests_total{code="503"} 1.0',
        'noctaya_gateway_rejections_total{reason="queue_full"} 1.0',
        'noctaya_gateway_demand_reports_total{result="success"} 1.0',
        'noctaya_gateway_upstream_errors_total{kind="connect"} 1.0',
        'noctaya_gateway_upstream_errors_total{kind="cut"} 1.0',
        'noctaya_gateway_client_disconnects_total{phase="held"} 1.0',
        'noctaya_gateway_control_reconnects_total{kind="probe"} 1.0',
        'noctaya_gateway_activations_total{result="ready"} 1.0',
        "noctaya_gateway_replays_total 1.0",
    } <= set(text(metrics))


def test_the_wait_histogram_is_cumulative_with_the_buckets_of_the_contract() -> None:
    metrics = GatewayMetrics()
    for seconds in (0.005, 0.01, 0.05, 4.0, 1000.0):
        metrics.waited(seconds)
    lines = text(metrics)
    name = "noctaya_gateway_activation_wait_seconds"
    counts = dict(zip(WAIT_BUCKETS, [2, 3, 3, 4, 4, 4, 4, 4, 4], strict=True))
    for bound, count in counts.items():
        assert f'{name}_bucket{{le="{bound}"}} {count}.0' in lines
    assert f'{name}_bucket{{le="+Inf"}} 5.0' in lines
    assert f"{name}_count 5.0" in lines
    assert f"{name}_sum 1004.065" in lines


def test_gauges_are_read_when_they_are_asked_for() -> None:
    metrics = GatewayMetrics()
    values = {"held": 1.0}
    metrics.gauge("held", "held", lambda: values["held"])
    metrics.labelled_gauge("backends", "backends", "state", lambda: {"ready": values["held"]})
    metrics.counter("activation_events", "rises", lambda: 3)
    values["held"] = 7.0
    lines = text(metrics)
    assert "noctaya_gateway_held 7.0" in lines
    assert 'noctaya_gateway_backends{state="ready"} 7.0' in lines
    assert "noctaya_gateway_activation_events_total 3.0" in lines


def test_t1_a_long_wait_can_be_found_again_by_its_exemplar() -> None:
    registry = CollectorRegistry()
    metrics = GatewayMetrics(wall=lambda: 1_795_000_000.5)
    registry.register(metrics)
    metrics.waited(0.5)
    metrics.waited(20.0, activation_id="a" * 32, trace_id="b" * 32)
    metrics.waited(21.0, activation_id="c" * 32)
    lines = render(registry, "application/openmetrics-text")[0].decode().splitlines()
    waits = [line for line in lines if "activation_wait_seconds_bucket" in line and "#" in line]
    bucket = 'noctaya_gateway_activation_wait_seconds_bucket{le="30.0"} 3.0'
    assert waits == [f'{bucket} # {{activation_id="{"c" * 32}"}} 21.0 1795000000.5']
    assert b"#" not in b"".join(
        line for line in render(registry)[0].splitlines() if not line.startswith(b"#")
    )
