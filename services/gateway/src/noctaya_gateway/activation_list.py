"""The timeline as the document that the operator reads."""

from __future__ import annotations

from datetime import UTC, datetime

from noctaya_api.gateway_activations import ActivationList, ListedActivation

from noctaya_gateway.timeline import ActivationTimeline, Moments


def list_activations(timeline: ActivationTimeline) -> ActivationList:
    """The document of this moment."""
    return ActivationList(now=_moment(timeline.now), activations=[_listed(each) for each in timeline])


def _listed(moments: Moments) -> ListedActivation:
    return ListedActivation(
        id=moments.id,
        traceparent=moments.traceparent or None,
        requested=_moment(moments.requested),
        told=_maybe(moments.told),
        ready=_maybe(moments.ready),
        first_byte=_maybe(moments.first_byte),
        ended=_maybe(moments.ended),
        outcome=moments.outcome,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _maybe(seconds: float | None) -> datetime | None:
    return None if seconds is None else _moment(seconds)
