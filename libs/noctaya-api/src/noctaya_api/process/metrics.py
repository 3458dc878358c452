"""A metrics registry of one's own and its text forms; the process-global registry is never used."""

from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics import exposition as openmetrics

_OPENMETRICS: Final = "application/openmetrics-text"


def new_registry() -> CollectorRegistry:
    """A registry that holds the process's own CPU, memory and file-descriptor figures, and no more yet."""
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    return registry


def render(registry: CollectorRegistry, accept: str | None = None) -> tuple[bytes, str]:
    """Body and content type of a `/metrics` answer.

    Args:
        registry: what to show.
        accept: the reader's `Accept` header. OpenMetrics 1.0.0, which has exemplars, goes to readers that
            name it and like it at least as much as plain text; the text format 0.0.4 goes to all others.
    """
    wanted = _weights(accept or "")
    if (weight := wanted.get(_OPENMETRICS, 0.0)) > 0 and weight >= wanted.get("text/plain", 0.0):
        body: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return body, openmetrics.CONTENT_TYPE_LATEST
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4


def _weights(accept: str) -> dict[str, float]:
    """The best weight of each media type of an Accept header; what can't be read weighs nothing."""
    found: dict[str, float] = {}
    for each in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in each.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            found[kind] = max(found.get(kind, 0.0), float(weight))
        except ValueError:
            continue
    return found
