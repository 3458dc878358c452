"""A finished activation as a trace: one span for the whole, one below it for each phase.

The spans are made afterwards, with the times of the record, and only where a collector is configured. Their
trace id is the activation's id: they lie below the span of the request that began it, where its gateway made
one, and else have the id all the same, so that whoever has it from a header, a log or an Event finds them.

A success is known before its first byte is, and on a quick start before its id: the trace waits for both as
long as gateways are asked for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from noctaya_api.activation_timeline import spans
from noctaya_api.v1alpha1.llmservice_status import ActivationRecord

from noctaya_operator.activation_poller import AFTER_READY
from noctaya_operator.kube.objects import Key

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer


@dataclass
class _Waiting:
    record: ActivationRecord
    parent: str
    timer: asyncio.TimerHandle


class ActivationTracer:
    """Emits spans of activations; without a provider it does nothing.

    Args:
        provider: where spans go; None for nowhere.
        parent_of: the `traceparent` of the request that began an activation, empty when there is none.
    """

    def __init__(
        self,
        provider: TracerProvider | None,
        *,
        parent_of: Callable[[Key, str], str] = lambda service, activation_id: "",
    ) -> None:
        self._parent_of = parent_of
        self._trace_id: int | None = None
        self._tracer = self._made(provider) if provider is not None else None
        self._waiting: dict[Key, _Waiting] = {}

    def record(self, service: Key, record: ActivationRecord) -> None:
        """An activation succeeded: emit its trace, now or once its first byte is known."""
        if self._tracer is None or record.ready is None:
            return
        self.settle(service)
        parent = self._parent(service, record)
        if record.first_byte is not None:
            self._emit(service, record, parent)
            return
        timer = asyncio.get_running_loop().call_later(AFTER_READY, self.settle, service)
        self._waiting[service] = _Waiting(record, parent, timer)

    def update(self, service: Key, record: ActivationRecord) -> None:
        """More became known of an activation that had succeeded before."""
        waiting = self._waiting.get(service)
        if waiting is None or waiting.record.requested != record.requested:
            return
        waiting.record, waiting.parent = record, waiting.parent or self._parent(service, record)
        if record.first_byte is not None or record.ended is not None:
            self.settle(service)

    def settle(self, service: Key) -> None:
        """Wait no longer: emit the trace of this service that waits, if one does, with what is known."""
        if (waiting := self._waiting.pop(service, None)) is not None:
            waiting.timer.cancel()
            self._emit(service, waiting.record, waiting.parent)

    def close(self) -> None:
        """Wait for nothing any more."""
        for service in list(self._waiting):
            self.settle(service)

    def _parent(self, service: Key, record: ActivationRecord) -> str:
        return self._parent_of(service, record.id) if record.id else ""

    def _emit(self, service: Key, record: ActivationRecord, parent: str) -> None:
        if self._tracer is None or record.ready is None:
            return
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415  only where traces are wanted

        self._trace_id = int(record.id, 16) if record.id else None
        attributes = {
            "k8s.namespace.name": service.namespace,
            "noctaya.llmservice": service.name,
            "k8s.pod.name": record.pod or "",
        }
        if record.id:
            attributes["noctaya.activation.id"] = record.id
        begun = datetime.fromisoformat(record.requested)
        whole = self._tracer.start_span(
            "activation", context=_context(parent), start_time=_nanoseconds(begun), attributes=attributes
        )
        inside = set_span_in_context(whole)
        for phase, start, end in spans(record):
            span = self._tracer.start_span(
                f"activation.{phase}", context=inside, start_time=_nanoseconds(start)
            )
            span.end(end_time=_nanoseconds(end))
        last = record.first_byte or record.ready
        whole.end(end_time=_nanoseconds(max(begun, datetime.fromisoformat(last))))

    def _made(self, provider: TracerProvider) -> Tracer:
        """A tracer that gives a trace that begins here the id of the activation."""
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415

        given = self

        class Ids(RandomIdGenerator):
            def generate_trace_id(self) -> int:
                return given._trace_id or super().generate_trace_id()

        tracer = provider.get_tracer("noctaya_operator")
        # A provider that is switched off by the environment has tracers without ids.
        if hasattr(tracer, "id_generator"):
            tracer.id_generator = Ids()
        return tracer


def _context(traceparent: str) -> Context | None:
    if not traceparent:
        return None
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})


def _nanoseconds(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, time.tzinfo)) // timedelta(microseconds=1) * 1000
