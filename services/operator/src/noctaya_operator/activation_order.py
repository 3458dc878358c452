"""The moments of an activation in order: a timeline never runs backwards. Pure.

They come from several clocks and in two kinds. What the operator saw was then or before; what Kubernetes
tells in whole seconds was at some time within that second. So a moment is at the latest when the
next one is known to have been over, and at the earliest when the one before it was: what is too late is
taken back, what is too early within its second is put forward. Doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from noctaya_api.v1alpha1.llmservice_status import ActivationRecord

BEFORE_THE_POD: Final = ("requested", "keda_told", "replicas_written")
OF_THE_POD: Final = ("scheduled", "weights_present", "images_pulled", "started", "ready")
AFTER_THE_POD: Final = ("first_byte",)
_REST_OF_A_SECOND: Final = timedelta(milliseconds=999)


def timestamp(moment: datetime) -> str:
    """RFC 3339 with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def in_order(record: ActivationRecord, *, created: str | None = None) -> ActivationRecord:
    """The record with its moments in order.

    Args:
        record: the record so far.
        created: when the Pod it follows was made; nothing before the Pod was later than that.
    """
    fields = [*BEFORE_THE_POD, "", *OF_THE_POD, *AFTER_THE_POD]
    times = [getattr(record, field) if field else created for field in fields]
    changes = {
        field: timestamp(moment)
        for field, time, moment in zip(fields, times, ordered(times), strict=True)
        if field and time and moment is not None and datetime.fromisoformat(time) != moment
    }
    return record.model_copy(update=changes) if changes else record


def ordered(times: Sequence[str | None]) -> list[datetime | None]:
    """Moments that don't run backwards, from RFC 3339 times in their proper order; None for an unknown one.

    No moment is put later than its own time says, the rest of a whole second aside.
    """
    moments = [_milliseconds(time) if time else None for time in times]
    latest: datetime | None = None
    for place in reversed(range(len(moments))):
        moment = moments[place]
        if moment is None:
            continue
        end = moment if moment.microsecond else moment + _REST_OF_A_SECOND
        latest = end if latest is None else min(latest, end)
        moments[place] = min(moment, latest)
    earliest: datetime | None = None
    for place, moment in enumerate(moments):
        if moment is not None:
            earliest = moment if earliest is None else max(earliest, moment)
            moments[place] = earliest
    return moments


def _milliseconds(time: str) -> datetime:
    moment = datetime.fromisoformat(time)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
