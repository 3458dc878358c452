"""OpenTelemetry spans of a request, when a collector is configured; None everywhere otherwise.

The data path asks for one `RequestTrace` per request and names the phases it goes through: admission,
activation, upstream. The activation that a request waits for is an attribute of that phase; it has the trace
id of the request that began it, and the phases of requests that joined later link to that one's span. With
tracing on, the upstream request carries a `traceparent` of the gateway's
span; with it off the client's header passes through untouched and the only cost is one comparison with
None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from noctaya_api.process.telemetry import FLUSH_TIMEOUT, flush_tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Link, Span, Tracer

    from noctaya_gateway.timeline import Moments


UPSTREAM: Final = "upstream"
"""The phase in which the backend is asked."""


class Tracing:
    """Makes request traces with the provider that `configure_tracing` returned."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer: Tracer = provider.get_tracer("noctaya_gateway")

    def begin(self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> RequestTrace:
        """Start the span of a request, as a child of the client's `traceparent` if it sent one."""
        from opentelemetry.trace import SpanKind  # noqa: PLC0415  loaded only when tracing is on
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        carrier = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in headers
            if name.lower() in (b"traceparent", b"tracestate")
        }
        context = TraceContextTextMapPropagator().extract(carrier)
        path = target.partition(b"?")[0].decode("latin-1")
        verb = method.decode("latin-1")
        span = self._tracer.start_span(
            f"{verb} {path}",
            context=context,
            kind=SpanKind.SERVER,
            attributes={"http.request.method": verb, "url.path": path},
        )
        return RequestTrace(self._tracer, span)

    def close(self, *, timeout: float = FLUSH_TIMEOUT) -> None:
        """Flush to the collector, giving up after `timeout` seconds; blocks, so call it in a thread."""
        flush_tracing(self._provider, timeout=timeout)


class RequestTrace:
    """The span of one request and the phase it is in."""

    __slots__ = ("_phase", "_span", "_tracer")

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._phase: Span | None = None

    @property
    def trace_id(self) -> str:
        """32 hex digits: the client's trace if it sent one, else a new one."""
        return f"{self._span.get_span_context().trace_id:032x}"

    @property
    def root(self) -> str:
        """The `traceparent` of the request's own span, whatever phase it is in."""
        return _traceparent(self._span)

    @property
    def traceparent(self) -> bytes:
        """The header value to send upstream, made from the current phase."""
        return _traceparent(self._phase or self._span).encode()

    def phase(self, name: str) -> None:
        """End the current phase and begin `name` (admission, activation, upstream)."""
        self._begin_phase(name, {}, ())

    def wait(self, activation: Moments | None) -> None:
        """End the current phase and begin the wait for `activation`."""
        if activation is None:
            self._begin_phase("activation", {}, ())
            return
        links = () if activation.traceparent in ("", self.root) else _links(activation.traceparent)
        self._begin_phase("activation", {"noctaya.activation.id": activation.id}, links)

    def _begin_phase(self, name: str, attributes: dict[str, str], links: Sequence[Link]) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context  # noqa: PLC0415

        self._end_phase()
        # Maps of services join the side that asks with the one that answers by these kinds.
        kind = SpanKind.CLIENT if name == UPSTREAM else SpanKind.INTERNAL
        self._phase = self._tracer.start_span(
            name, context=set_span_in_context(self._span), kind=kind, attributes=attributes, links=links
        )

    def end(self, status: int | None) -> None:
        """The request is over with `status`, or None when the client left first."""
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415

        self._end_phase()
        if status is None:
            self._span.set_attribute("noctaya.client_left", True)
        else:
            self._span.set_attribute("http.response.status_code", status)
            if status >= 500:
                self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()

    def _end_phase(self) -> None:
        if self._phase is not None:
            self._phase.end()
            self._phase = None


def _traceparent(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _links(traceparent: str) -> Sequence[Link]:
    """A link to the span that a `traceparent` names; none when it names none."""
    from opentelemetry.trace import Link, get_current_span  # noqa: PLC0415
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    named = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    context = get_current_span(named).get_span_context()
    return (Link(context),) if context.is_valid else ()
