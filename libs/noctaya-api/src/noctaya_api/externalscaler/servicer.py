"""KEDA's four calls over any source of demand.

KEDA ignores a pushed `false` and may lose a first `true`. So a stream gets the state when it opens and
whenever it flips, and `true` again every two seconds while demand lasts. On a stop every stream ends with
status OK: only a clean end resets KEDA's reconnect back-off, which otherwise grows to a minute.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import grpc
from grpc.aio import ServicerContext

from noctaya_api.demand.signal import DemandState
from noctaya_api.externalscaler import externalscaler_pb2 as pb
from noctaya_api.externalscaler.externalscaler_pb2_grpc import ExternalScalerServicer as GeneratedServicer
from noctaya_api.externalscaler.trigger import METRIC_NAME, InvalidTrigger, Trigger, parse_trigger

_INT64_MAX = 2**63 - 1


class DemandSource(Protocol):
    """Where the numbers come from: a gateway's own signal, or the aggregate of many."""

    def snapshot(self) -> DemandState | None:
        """The state now; None while it is not known yet."""

    async def changed(self, after: int) -> DemandState | None:
        """Wait for a state whose version is above `after`; None: still unknown, ask again later."""


class ExternalScalerServicer(GeneratedServicer):
    """Serves one metric of one source.

    While the source is unknown the unary calls that need demand answer UNAVAILABLE, which makes KEDA keep
    what it has; a stream stays open and silent until there is something true to say.

    Args:
        source: the demand.
        metric_name: the only metric served.
        on_stream_open, on_stream_closed: called around every accepted StreamIsActive.
        on_told: called with the state each time a client was given it, by push or by answer.
        repeat: seconds between repeats of `true` on an open stream (behaviour S4).
        max_streams: StreamIsActive calls open at once; more get RESOURCE_EXHAUSTED.
    """

    def __init__(
        self,
        source: DemandSource,
        *,
        metric_name: str = METRIC_NAME,
        on_stream_open: Callable[[], None] = lambda: None,
        on_stream_closed: Callable[[], None] = lambda: None,
        on_told: Callable[[DemandState], None] = lambda state: None,
        repeat: float = 2.0,
        max_streams: int = 64,
    ) -> None:
        self._source = source
        self._metric_name = metric_name
        self._on_open = on_stream_open
        self._on_closed = on_stream_closed
        self._on_told = on_told
        self._repeat = repeat
        self._max_streams = max_streams
        self._ending = False
        self._streams: set[_Stream] = set()

    @property
    def streams(self) -> int:
        """Open StreamIsActive calls."""
        return len(self._streams)

    async def IsActive(  # noqa: N802  the wire's name
        self, request: pb.ScaledObjectRef, context: "ServicerContext[pb.ScaledObjectRef, pb.IsActiveResponse]"
    ) -> pb.IsActiveResponse:
        """Whether there is demand."""
        await self._check(request, context)
        state = await self._known(context)
        self._on_told(state)
        return pb.IsActiveResponse(result=state.active)

    async def GetMetricSpec(  # noqa: N802
        self,
        request: pb.ScaledObjectRef,
        context: "ServicerContext[pb.ScaledObjectRef, pb.GetMetricSpecResponse]",
    ) -> pb.GetMetricSpecResponse:
        """The one metric and its target; needs no demand, so it answers while the source is unknown too."""
        trigger = await self._check(request, context)
        spec = pb.MetricSpec(
            metricName=trigger.metric_name,
            targetSize=trigger.whole_target,
            targetSizeFloat=trigger.target,
        )
        return pb.GetMetricSpecResponse(metricSpecs=[spec])

    async def GetMetrics(  # noqa: N802
        self,
        request: pb.GetMetricsRequest,
        context: "ServicerContext[pb.GetMetricsRequest, pb.GetMetricsResponse]",
    ) -> pb.GetMetricsResponse:
        """The demand, in the integer and in the float field."""
        trigger = await self._check(request.scaledObjectRef, context)
        if request.metricName != trigger.metric_name:
            await _abort(
                context,
                grpc.StatusCode.INVALID_ARGUMENT,
                f"metric {request.metricName!r} is not served here, only {trigger.metric_name!r}",
            )
        state = await self._known(context)
        self._on_told(state)
        value = pb.MetricValue(
            metricName=trigger.metric_name,
            metricValue=min(state.demand, _INT64_MAX),
            metricValueFloat=float(state.demand),
        )
        return pb.GetMetricsResponse(metricValues=[value])

    async def StreamIsActive(  # noqa: N802
        self, request: pb.ScaledObjectRef, context: "ServicerContext[pb.ScaledObjectRef, pb.IsActiveResponse]"
    ) -> None:
        """Push the state on open, on every flip, and `true` again while it lasts."""
        await self._check(request, context)
        if len(self._streams) >= self._max_streams:
            await _abort(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams are open")
        stream = _Stream()
        self._streams.add(stream)
        self._on_open()
        try:
            # Headers at once: the client sees that the call was accepted even while there is nothing to say.
            await context.send_initial_metadata(())
            await self._push(stream, context)
        finally:
            self._streams.discard(stream)
            self._on_closed()

    def end_streams(self) -> None:
        """End every open stream with status OK, and every later one as soon as it opens."""
        self._ending = True
        for stream in self._streams:
            stream.wake()

    async def _push(
        self, stream: "_Stream", context: "ServicerContext[pb.ScaledObjectRef, pb.IsActiveResponse]"
    ) -> None:
        told: bool | None = None
        while not self._ending:
            state = self._source.snapshot()
            if state is None or state.active == told:
                state = await self._flip(stream, told)
            if state is not None and not self._ending:
                told = state.active
                await context.write(pb.IsActiveResponse(result=told))
                self._on_told(state)

    async def _flip(self, stream: "_Stream", told: bool | None) -> DemandState | None:
        """The next state worth a message; None when woken for another reason."""
        state = self._source.snapshot()
        version = -1 if state is None else state.version
        try:
            async with asyncio.timeout(self._repeat if told or state is None else None) as timer:
                stream.timer = timer
                if self._ending:
                    return None
                while state is None or state.active == told:
                    changed = await self._source.changed(version)
                    if changed is None:
                        await asyncio.sleep(self._repeat)
                        continue
                    state, version = changed, changed.version
        except TimeoutError:
            state = self._source.snapshot()
        finally:
            stream.timer = None
        return state

    async def _check(self, ref: pb.ScaledObjectRef, context: "ServicerContext[Any, Any]") -> Trigger:
        try:
            return parse_trigger(ref.scalerMetadata, metric_name=self._metric_name)
        except InvalidTrigger as error:
            await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def _known(self, context: "ServicerContext[Any, Any]") -> DemandState:
        state = self._source.snapshot()
        if state is None:
            await _abort(context, grpc.StatusCode.UNAVAILABLE, "demand is not known yet after a start")
        return state


class _Stream:
    """One open StreamIsActive; `timer` is the wait it is in, if it is in one."""

    __slots__ = ("timer",)

    def __init__(self) -> None:
        self.timer: asyncio.Timeout | None = None

    def wake(self) -> None:
        if self.timer is not None and not self.timer.expired():
            self.timer.reschedule(asyncio.get_running_loop().time())


async def _abort(context: "ServicerContext[Any, Any]", code: grpc.StatusCode, details: str) -> NoReturn:
    await context.abort(code, details)
    raise AssertionError("abort always raises")
