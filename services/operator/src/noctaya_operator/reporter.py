"""What a pass over a service tells: its status, and the Events and metrics of what changed in it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from noctaya_api.activation_timeline import FIRST_BYTE, phases
from noctaya_api.conditions import ConditionStatus, ConditionType, EventAction
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, LLMServiceStatus

from noctaya_operator.activation_trace import ActivationTracer
from noctaya_operator.events_policy import events_of
from noctaya_operator.kube.errors import Invalid
from noctaya_operator.kube.events import EventRecorder
from noctaya_operator.kube.objects import Key, Object, key_of
from noctaya_operator.metrics import OperatorMetrics
from noctaya_operator.publish import StatusWriter
from noctaya_operator.status import previous_status

log = logging.getLogger(__name__)


class Reporter:
    """Publishes the status of services.

    Args:
        writer: writes the status.
        recorder: takes Events.
        metrics: counts activations.
        tracer: traces activations.
    """

    def __init__(
        self,
        writer: StatusWriter,
        recorder: EventRecorder,
        *,
        metrics: OperatorMetrics,
        tracer: ActivationTracer,
    ) -> None:
        self._writer = writer
        self._recorder = recorder
        self._metrics = metrics
        self._tracer = tracer

    def newest(self, key: Key) -> Object | None:
        """The service as we know it."""
        return self._writer.newest(key)

    def forget(self, key: Key) -> None:
        """The service is gone: so are its series, and nothing more becomes known of its activation."""
        self._metrics.forget(key)
        self._tracer.settle(key)

    async def report(self, service: Object, compute: Callable[[Object], LLMServiceStatus]) -> None:
        """Write the status if it says something new, and tell of what changed. Raises `ApiError`."""
        before: list[Object] = []
        after: list[LLMServiceStatus] = []

        def wanted(latest: Object) -> Object:
            status = compute(latest)
            before[:], after[:] = [latest], [status]
            return status.manifest()

        try:
            now, written = await self._writer.publish(service, wanted)
        except Invalid as error:
            self._refused(service, after[0], error)
            return
        if not written:
            return
        for told in events_of(before[0], after[0]):
            self._recorder.emit(now, type=told.type, reason=told.reason, action=told.action, note=told.note)
        self._account(key_of(now), previous_status(before[0]), after[0])

    def _refused(self, service: Object, status: LLMServiceStatus, error: Invalid) -> None:
        """Say in an Event what no status can say.

        The API server takes no status of an object on which its rules can't be evaluated; it was stored
        before there were such rules. Asking again is of no use until the object changes.
        """
        log.warning("%s takes no status: %s", key_of(service), error.message)
        degraded = next((each for each in status.conditions if each.type == ConditionType.DEGRADED), None)
        if degraded is not None and degraded.status is ConditionStatus.TRUE:
            self._recorder.emit(
                service,
                type="Warning",
                reason=degraded.reason,
                action=EventAction.REPORT_STATUS,
                note=degraded.message,
            )

    def _account(self, service: Key, before: LLMServiceStatus, after: LLMServiceStatus) -> None:
        record, old = after.last_activation, before.last_activation
        if record is None or record.outcome is ActivationOutcome.IN_PROGRESS:
            return
        spent = dict(phases(record)) if record.outcome is ActivationOutcome.SUCCEEDED else {}
        if old is not None and old.outcome is record.outcome and old.requested == record.requested:
            # Counted already, all but a first byte that became known since then.
            if old.first_byte is None and FIRST_BYTE in spent:
                answered = {FIRST_BYTE: spent[FIRST_BYTE]}
                self._metrics.phases(service, answered, activation_id=record.id)
            if spent:
                self._tracer.update(service, record)
            return
        self._metrics.activated(service, record.outcome)
        if spent:
            self._metrics.phases(service, spent, activation_id=record.id)
            self._tracer.record(service, record)
