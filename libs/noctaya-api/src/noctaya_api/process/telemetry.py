"""OpenTelemetry traces over OTLP/HTTP, only where an endpoint is configured.

The SDK is imported when it is needed: it costs about 10 MB of memory, and most installations have no
collector. A collector that is away costs its spans and one line in the log: spans wait in a queue of 2048,
the oldest go first, and nothing but the SDK's own thread waits for the network.
"""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from noctaya_api import names
from noctaya_api.process.trace_headers import HeadersUnusable, parse_headers

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
HEADER_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")

FLUSH_TIMEOUT: Final = 2.0
"""Seconds a stop waits for a collector that takes spans slowly or not at all."""


class TracingUnusable(ValueError):
    """A variable of traces can't be used; the message names it and tells no value."""


def configure_tracing(
    service_name: str,
    *,
    attributes: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> "TracerProvider | None":
    """A provider that batches spans to the configured collector, or None when no endpoint variable is set.

    The provider is returned and not made global; `flush_tracing` ends it. `OTEL_SERVICE_NAME` wins over
    `service_name`, `OTEL_RESOURCE_ATTRIBUTES` over `attributes` and over the Pod's name, which is known
    inside a cluster; every other OTEL variable is read by the SDK itself.

    Raises:
        TracingUnusable: an endpoint is no plain URL, or headers are no list of `name=value`.
    """
    if not any(environ.get(name) for name in ENDPOINT_VARIABLES):
        return None
    check_tracing(environ)
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    from noctaya_api.process.trace_exporter import CollectorExporter  # noqa: PLC0415

    name = environ.get("OTEL_SERVICE_NAME") or service_name
    given = Resource.create({SERVICE_NAME: name})
    resource = Resource({**_pod(environ), **(attributes or {})}).merge(given)
    file = environ.get(names.ENV_TRACES_HEADERS_FILE)
    # What is left at the end is flush_tracing's affair, with a bound; at exit nothing waits.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(CollectorExporter(headers=Path(file) if file else None)))
    return provider


def check_tracing(environ: Mapping[str, str] = os.environ) -> None:
    """Raises TracingUnusable when a variable of traces can't be used or holds a credential it must not."""
    for name in ENDPOINT_VARIABLES:
        if (value := environ.get(name)) and (problem := _problem(value)):
            raise TracingUnusable(f"{name}: {problem}")
    for name in HEADER_VARIABLES:
        try:
            parse_headers(environ.get(name, ""))
        except HeadersUnusable as error:
            raise TracingUnusable(f"{name}: {error}") from error


def flush_tracing(provider: "TracerProvider", *, timeout: float = FLUSH_TIMEOUT) -> None:
    """Hand what spans there are to the collector, giving up after `timeout` seconds; blocks so long."""
    flushing = threading.Thread(target=provider.shutdown, name="trace-flush", daemon=True)
    flushing.start()
    flushing.join(timeout)


def _problem(endpoint: str) -> str:
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no URL"
    if "@" in parts.netloc:
        return (
            "must hold no user and no password, which everybody would see who may look at a Pod; "
            f"put an Authorization header into the file of {names.ENV_TRACES_HEADERS_FILE} "
            "(tracing.headersSecret of the charts)"
        )
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "must be an http:// or https:// URL with a host, such as http://collector.observability:4318"
    return "must have no query and no fragment" if parts.query or parts.fragment else ""


def _pod(environ: Mapping[str, str]) -> dict[str, str]:
    """A Pod's host name is its name."""
    host = environ.get("HOSTNAME")
    return {"k8s.pod.name": host} if host and environ.get("KUBERNETES_SERVICE_HOST") else {}
