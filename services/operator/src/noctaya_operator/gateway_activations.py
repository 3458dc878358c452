"""What gateways tell of their activations: ids and moments, in the operator's time. Pure.

Every gateway remembers its last activations on its own clock and says what time it has now, so a clock that
is wrong by more than an answer may take can be allowed for. One activation of a service is one at each
gateway that held requests meanwhile: the one that was asked first gives the id, of two in the same
millisecond the one with the lower id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from noctaya_api.gateway_activations import ListedActivation
from noctaya_api.v1alpha1.llmservice_status import ActivationRecord

from noctaya_operator.activation_order import timestamp

ACCURACY: Final = timedelta(seconds=2)
"""How far a gateway's clock may seem to be off before it is corrected: as long as an answer may take."""
_REST_OF_A_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What all gateways together tell of one activation."""

    id: str
    requested: str
    keda_told: str | None
    first_byte: str | None


def told_of(record: ActivationRecord, gateways: Iterable[ListedActivation]) -> Told | None:
    """What belongs to the activation of a record: all that was going on meanwhile; None for nothing."""
    begun = datetime.fromisoformat(record.requested)
    ready = datetime.fromisoformat(record.ready) + _REST_OF_A_SECOND if record.ready else None
    meant = [
        each
        for each in gateways
        if (each.ended is None or each.ended >= begun) and (ready is None or each.requested <= ready)
    ]
    if not meant:
        return None
    first = min(meant, key=lambda each: (timestamp(each.requested), each.id))
    return Told(
        id=first.id,
        requested=timestamp(first.requested),
        keda_told=_earliest(each.told for each in meant),
        first_byte=_earliest(each.first_byte for each in meant),
    )


def flattened(answers: Mapping[str, Sequence[ListedActivation]]) -> tuple[ListedActivation, ...]:
    """The activations of all gateways, by the gateways' names."""
    return tuple(each for name in sorted(answers) for each in answers[name])


def _earliest(moments: Iterable[datetime | None]) -> str | None:
    known = [moment for moment in moments if moment is not None]
    return timestamp(min(known)) if known else None
