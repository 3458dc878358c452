"""The last activations as a document, for the operator and for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from noctaya_gateway.activation import Outcome
from noctaya_gateway.timeline import ActivationTimeline, Moments


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[datetime, PlainSerializer(_text)]
"""RFC 3339 with milliseconds."""


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class ListedActivation(_Document):
    """One activation; what has not come is absent."""

    id: str = Field(description="32 hex digits; the trace id, where the request that began it was traced")
    traceparent: str | None = Field(default=None, description="of that request; absent without tracing")
    requested: Moment
    told: Moment | None = Field(default=None, description="KEDA or the aggregate scaler knew the demand")
    ready: Moment | None = None
    first_byte: Moment | None = Field(
        default=None, description="the first answer to a request that had waited began"
    )
    ended: Moment | None = Field(default=None, description="it was ready or given up")
    outcome: Outcome | None = Field(default=None, description="absent while it goes on")

    @classmethod
    def of(cls, moments: Moments) -> ListedActivation:
        """One of the timeline."""
        return cls(
            id=moments.id,
            traceparent=moments.traceparent or None,
            requested=_moment(moments.requested),
            told=_maybe(moments.told),
            ready=_maybe(moments.ready),
            first_byte=_maybe(moments.first_byte),
            ended=_maybe(moments.ended),
            outcome=moments.outcome,
        )


class ActivationList(_Document):
    """What this gateway remembers."""

    now: Moment = Field(description="this gateway's clock, from which all moments are")
    activations: list[ListedActivation] = Field(description="the newest first, at most 8")

    @classmethod
    def of(cls, timeline: ActivationTimeline) -> ActivationList:
        """The document of this moment."""
        return cls(now=_moment(timeline.now), activations=[ListedActivation.of(each) for each in timeline])


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _maybe(seconds: float | None) -> datetime | None:
    return None if seconds is None else _moment(seconds)
