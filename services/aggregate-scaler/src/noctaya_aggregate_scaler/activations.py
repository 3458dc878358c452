"""Activations on their way through the scaler: named by a gateway's report, handed to KEDA.

Each is one line in the log when the first report names it and one when KEDA was told that there is demand,
with the seconds between them; and a span below the request that began it, where its gateway traces. Demand
itself knows nothing of this: what a report calls itself changes no number.
"""

from __future__ import annotations

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from noctaya_api.demand.signal import DemandState

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

REMEMBERED: Final = 128
"""Activations that are known at once; the oldest is forgotten for another one."""
_ID: Final = re.compile(rb"[0-9a-f]{32}")
_TRACEPARENT_LIMIT: Final = 64

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Activation:
    member: str
    traceparent: str
    reported: float
    told: bool = False


class Activations:
    """What is known of activations.

    Args:
        provider: where spans go; None for nowhere.
        wall: seconds since 1970.
    """

    def __init__(
        self, provider: TracerProvider | None = None, *, wall: Callable[[], float] = time.time
    ) -> None:
        self._tracer = provider.get_tracer("noctaya_aggregate_scaler") if provider is not None else None
        self._wall = wall
        self._known: OrderedDict[str, _Activation] = OrderedDict()
        self._untold = 0

    def reported(self, member: str, activation_id: bytes | None, traceparent: bytes | None) -> None:
        """A report with demand was taken up that may name an activation; what is no id is ignored."""
        if activation_id is None or _ID.fullmatch(activation_id) is None:
            return
        name = activation_id.decode()
        if name in self._known:
            return
        parent = (traceparent or b"")[:_TRACEPARENT_LIMIT].decode("latin-1")
        self._known[name] = _Activation(member, parent, self._wall())
        self._untold += 1
        if len(self._known) > REMEMBERED:
            _, oldest = self._known.popitem(last=False)
            self._untold -= not oldest.told
        logger.info("activation reported", extra={"activation_id": name, "member": member})

    def told(self, state: DemandState) -> None:
        """KEDA was given a state."""
        if not self._untold or not state.active:
            return
        now = self._wall()
        for name, activation in self._known.items():
            if not activation.told:
                activation.told = True
                seconds = round(max(0.0, now - activation.reported), 3)
                logger.info(
                    "activation told to KEDA",
                    extra={"activation_id": name, "seconds": seconds, "demand": state.demand},
                )
                self._trace(name, activation, now)
        self._untold = 0

    def _trace(self, name: str, activation: _Activation, now: float) -> None:
        if self._tracer is None or not activation.traceparent:
            return
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415  only where traces go
            TraceContextTextMapPropagator,
        )

        context = TraceContextTextMapPropagator().extract({"traceparent": activation.traceparent})
        span = self._tracer.start_span(
            "activation.told",
            context=context,
            start_time=int(activation.reported * 1e9),
            attributes={"noctaya.activation.id": name, "noctaya.gateway.member": activation.member},
        )
        span.end(end_time=int(max(now, activation.reported) * 1e9))
