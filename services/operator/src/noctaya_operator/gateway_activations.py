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
from typing import Annotated, Final

from noctaya_api.v1alpha1.llmservice_status import ACTIVATION_ID, ActivationRecord
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from noctaya_operator.activation_order import timestamp

ACCURACY: Final = timedelta(seconds=2)
"""How far a gateway's clock may seem to be off before it is corrected: as long as an answer may take."""
_REST_OF_A_SECOND: Final = timedelta(seconds=1)


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore")


class GatewayActivation(_Document):
    """One activation at one gateway; None for what has not come."""

    id: Annotated[str, Field(pattern=ACTIVATION_ID)]
    requested: AwareDatetime
    told: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    first_byte: AwareDatetime | None = None
    traceparent: Annotated[str, Field(max_length=64)] = ""

    def moved(self, by: timedelta) -> GatewayActivation:
        """The same on a clock that is ahead of the gateway's."""
        fields = ("requested", "told", "ended", "first_byte")
        times = {field: moment + by for field in fields if (moment := getattr(self, field)) is not None}
        return self.model_copy(update=times)


class Answer(_Document):
    """What a gateway says."""

    now: AwareDatetime
    activations: Annotated[list[GatewayActivation], Field(max_length=64)]


class NotAnAnswer(ValueError):
    """Something that no gateway says."""


def parse_answer(body: bytes) -> Answer:
    """Check and read an answer. Raises NotAnAnswer."""
    try:
        return Answer.model_validate_json(body)
    except ValidationError as error:
        raise NotAnAnswer(f"{error.error_count()} faults, first: {error.errors()[0]['msg']}") from error


@dataclass(frozen=True, kw_only=True)
class Told:
    """What all gateways together tell of one activation."""

    id: str
    traceparent: str
    requested: str
    keda_told: str | None
    first_byte: str | None


def told_of(record: ActivationRecord, gateways: Iterable[GatewayActivation]) -> Told | None:
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
        traceparent=first.traceparent,
        requested=timestamp(first.requested),
        keda_told=_earliest(each.told for each in meant),
        first_byte=_earliest(each.first_byte for each in meant),
    )


def flattened(answers: Mapping[str, Sequence[GatewayActivation]]) -> tuple[GatewayActivation, ...]:
    """The activations of all gateways, by the gateways' names."""
    return tuple(each for name in sorted(answers) for each in answers[name])


def _earliest(moments: Iterable[datetime | None]) -> str | None:
    known = [moment for moment in moments if moment is not None]
    return timestamp(min(known)) if known else None
