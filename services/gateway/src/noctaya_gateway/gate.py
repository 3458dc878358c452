"""The control side of the gateway as one request sees it.

The data path holds a `Gate` and asks it everything that is not bytes: may this client in, is there a
slot, is a backend ready and which, what does a cold service say, how long to wait. The gate also ties
its parts together: readiness releases the line and ends the activation, the end of a failed activation
tells those who wait, every change reaches the demand meter.
"""

from __future__ import annotations

import logging
from typing import Protocol

from noctaya_gateway.activation import Activation, Outcome
from noctaya_gateway.admission import Admission
from noctaya_gateway.auth import Authenticator
from noctaya_gateway.balancer import Balancer
from noctaya_gateway.cors import Cors
from noctaya_gateway.demand import DemandMeter
from noctaya_gateway.errors import ActivationFailed, ColdStart, GatewayError
from noctaya_gateway.limits import Limiter
from noctaya_gateway.metrics import GatewayMetrics
from noctaya_gateway.models import Models, State, answer_cold
from noctaya_gateway.prewarming import PrewarmingFile
from noctaya_gateway.progress import Phase, phase_of, render_progress
from noctaya_gateway.responses import Header, Reply
from noctaya_gateway.timeline import ActivationTimeline, Origin
from noctaya_gateway.timers import Timers
from noctaya_gateway.tracing import Tracing
from noctaya_gateway.waiting import WaitingLine

log = logging.getLogger(__name__)

LEFTOVER = 1.0
"""Seconds: a held request whose own deadline is this near when its activation fails is left to time out by
itself.
"""


class RequestView(Protocol):
    """What the gate reads of a request."""

    method: bytes
    target: bytes
    headers: list[Header]


class Gate:
    """Everything the data path asks; attributes are the parts, methods the questions that concern several
    of them.
    """

    def __init__(
        self,
        *,
        timers: Timers,
        auth: Authenticator,
        admission: Admission,
        activation: Activation,
        balancer: Balancer,
        line: WaitingLine,
        demand: DemandMeter,
        metrics: GatewayMetrics,
        models: Models,
        cors: Cors,
        reject_cold: bool,
        heartbeats: bool,
        limits: Limiter | None = None,
        progress: bool = False,
        prewarming: PrewarmingFile | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.auth = auth
        self.admission = admission
        self.activation = activation
        self.balancer = balancer
        self.line = line
        self.demand = demand
        self.metrics = metrics
        self.models = models
        self.cors = cors
        self.cors_enabled = cors.enabled
        self.reject_cold = reject_cold
        """NOCTAYA_COLDSTART_MODE=reject: cold requests begin an activation and are refused at once."""
        self.heartbeats = heartbeats
        """NOCTAYA_HEARTBEATS: False holds streams silently."""
        self.limits = limits or Limiter(timers.time)
        self.progress = progress
        """NOCTAYA_PROGRESS: heartbeats say how far the cold start has come; a request may say otherwise."""
        self.prewarming = prewarming or PrewarmingFile(None, timers=timers)
        self.tracing = tracing
        """None when no collector is configured."""
        self.draining = False
        """True from SIGTERM on; readiness of this process, not of the backend."""
        self.timeline = ActivationTimeline()
        self._timers = timers
        activation.subscribe(begin=self.timeline.begun, end=self.timeline.ended)
        admission.notify(demand.update)
        activation.subscribe(change=demand.update, end=self._activation_ended)
        balancer.subscribe(ready=self._backend_ready, cold=self._backend_cold)

    @property
    def ready(self) -> bool:
        """True when a backend is ready: the service is warm."""
        return self.balancer.ready

    @property
    def open(self) -> bool:
        """True when a request may be forwarded now: warm, and nobody waits in line before it."""
        return self.balancer.ready and not self.line

    @property
    def state(self) -> State:
        """What model listings say about the service."""
        if self.balancer.ready:
            return State.READY
        if (notice := self.prewarming.notice()) is not None and not notice.failed:
            return State.ASLEEP if notice.asleep else State.PREWARMING
        return State.ACTIVATING if self.activation.pending else State.COLD

    def begin_activation(self, origin: Origin | None = None) -> None:
        """A cold request wants a backend; raises its refusal when it can't have one in time.

        An activation that begins here gets the trace id of `origin`, the request's trace, if there is one.

        While there are no weights, or the service sleeps, for longer than a request may wait none is asked
        for: it could not come.
        """
        notice = self.prewarming.notice()
        if notice is not None and notice.outlasts(self.activation.timeout):
            raise self.prewarming.refusal(notice)
        with self.timeline.asked_by(origin):
            self.activation.begin()

    def cold_error(self) -> GatewayError:
        """The refusal for a request that wants no wait, or may not wake the model."""
        if (notice := self.prewarming.notice()) is not None:
            return self.prewarming.refusal(notice)
        message = (
            "The model is not loaded; it is being started."
            if self.activation.pending
            else "The model is not loaded. A POST request starts it."
        )
        return ColdStart(retry_seconds=self.activation.retry_after(), message=message)

    def progress_comment(self, waited: float) -> bytes:
        """The comment that tells a request held for `waited` seconds what it waits for."""
        notice = self.prewarming.notice()
        if notice is None or self.balancer.ready:
            phase = phase_of(ready=self.balancer.ready, unready=self.balancer.unready)
            return render_progress(phase, waited=waited)
        phase = Phase.ASLEEP if notice.asleep else Phase.PREWARMING
        return render_progress(phase, waited=waited, left=notice.left, message=notice.message)

    def answer_cold(self, request: RequestView) -> Reply:
        """The local answer to a safe request on a cold service, or its refusal raised (behaviour G3)."""
        return answer_cold(
            self.models, request.method, request.target, state=self.state, refusal=self.cold_error()
        )

    def preflight(self, request: RequestView) -> Reply | None:
        """The answer to a CORS preflight, given before authentication; None for anything else."""
        return self.cors.preflight(request.method, request.headers)

    def cors_headers(self, request: RequestView) -> tuple[Header, ...]:
        """CORS headers for the response to `request`; `()` when there are none."""
        return self.cors.headers(request.headers)

    def close(self) -> None:
        """Stop all timers."""
        self.line.close()
        self.activation.close()
        self.demand.close()

    def _backend_ready(self) -> None:
        self.activation.became_ready()
        self.line.pump()

    def _backend_cold(self) -> None:
        log.info("no backend is ready any more", extra={"held": len(self.line)})
        if not self.line:
            return
        notice = self.prewarming.notice(fresh=True)
        if notice is not None and notice.asleep and notice.outlasts(self.activation.timeout):
            self.line.fail_all(lambda: self.prewarming.refusal(notice))
        else:
            self.activation.begin()

    def _activation_ended(self, outcome: Outcome, why: str) -> None:
        self.metrics.activation(outcome.value)
        if outcome is Outcome.READY:
            return
        log.warning(
            "activation failed",
            extra={"reason": why, "failures": self.activation.failures, "held": len(self.line)},
        )
        seconds = self.activation.retry_after()
        notice = self.prewarming.notice(fresh=True)
        if notice is not None and outcome is not Outcome.EXPIRED and not notice.asleep:
            notice = None

        def told() -> GatewayError:
            if notice is not None:
                return self.prewarming.refusal(notice)
            return ActivationFailed(f"The model could not be started: {why}.", retry_seconds=seconds)

        self.line.fail_all(
            told, deadline_after=self._timers.time() + LEFTOVER if outcome is Outcome.EXPIRED else 0.0
        )
