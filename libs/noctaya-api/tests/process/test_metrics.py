from noctaya_api.process.metrics import new_registry, render
from prometheus_client import Counter
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
