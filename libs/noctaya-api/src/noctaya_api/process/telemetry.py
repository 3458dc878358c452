"""OpenTelemetry traces over OTLP/HTTP, only where an endpoint is configured.

The SDK is imported when it is needed: it costs about 10 MB of memory, and most installations have no
collector.
"""

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


FLUSH_TIMEOUT = 2.0
"""Seconds a stop waits for a collector that takes spans slowly or not at all."""


def configure_tracing(
    service_name: str, *, environ: Mapping[str, str] = os.environ
) -> "TracerProvider | None":
    """A provider that batches spans to the configured collector, or None when no endpoint variable is set.

    The provider is returned and not made global; `shutdown()` flushes it. `OTEL_SERVICE_NAME` wins over
    `service_name`; every other OTEL variable is read by the SDK itself.
    """
    if not any(environ.get(name) for name in ENDPOINT_VARIABLES):
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    name = environ.get("OTEL_SERVICE_NAME") or service_name
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def flush_tracing(provider: "TracerProvider", *, timeout: float = FLUSH_TIMEOUT) -> None:
    """Hand what spans there are to the collector, giving up after `timeout` seconds; blocks so long."""
    flushing = threading.Thread(target=provider.shutdown, name="trace-flush", daemon=True)
    flushing.start()
    flushing.join(timeout)
