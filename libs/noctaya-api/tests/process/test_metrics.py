import pytest
from noctaya_api.process.metrics import new_registry, render
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families


def test_a_registry_of_ones_own_renders_as_prometheus_text() -> None:
    registry = new_registry()
    Counter("noctaya_things", "Things.", registry=registry).inc(3)
    body, content_type = render(registry)
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    assert families["noctaya_things"].samples[0].value == 3
    assert "process_resident_memory_bytes" in families
    assert content_type.startswith("text/plain; version=0.0.4")


def test_two_registries_share_nothing() -> None:
    for _ in range(2):
        Counter("noctaya_things", "Things.", registry=new_registry()).inc()


PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=0.0.4;q=0.4,*/*;q=0.1"
)


def traced() -> CollectorRegistry:
    registry = CollectorRegistry()
    seconds = Histogram("noctaya_seconds", "Seconds.", buckets=(1.0,), registry=registry)
    seconds.observe(0.5, exemplar={"trace_id": "0af7651916cd43dd8448eb211c80319c"})
    return registry


def test_exemplars_reach_a_reader_that_asks_for_openmetrics() -> None:
    body, content_type = render(traced(), PROMETHEUS)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    families = openmetrics_parser.text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]
    (family,) = (each for each in families if each.name == "noctaya_seconds")
    exemplars = [sample.exemplar for sample in family.samples if sample.exemplar is not None]
    assert [(each.labels, each.value) for each in exemplars] == [
        ({"trace_id": "0af7651916cd43dd8448eb211c80319c"}, 0.5)
    ]


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "*/*",
        "text/plain",
        "text/plain;q=0.9, application/openmetrics-text;q=0.1",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=much",
        "application/openmetrics-text;q=nan",
    ],
)
def test_every_other_reader_gets_plain_text(accept: str | None) -> None:
    body, content_type = render(traced(), accept)
    assert content_type.startswith("text/plain; version=0.0.4")
    assert b"trace_id" not in body
