"""A metrics registry of one's own and its text form; the process-global registry is never used."""

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4


def new_registry() -> CollectorRegistry:
    """A registry that holds the process's own CPU, memory and file-descriptor figures, and no more yet."""
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    return registry


def render(registry: CollectorRegistry) -> tuple[bytes, str]:
    """Body and content type of a `/metrics` answer in the Prometheus text format 0.0.4."""
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4
