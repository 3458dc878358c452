"""What a person wants of a service beside its spec: its annotation `keep`, as it holds now.

Awake raises the autoscaler's minimum, asleep pauses the autoscaler at zero; replicas stay KEDA's. An
annotation that can't be read changes nothing: the service goes on by its demand and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from noctaya_api.keep import Keep, KeepError, keep_of
from noctaya_api.v1alpha1 import LLMService

LONGEST_WAIT: Final = 3600.0
"""Seconds until the end of a wish is looked at again: clocks are set, and a far end needs no timer."""
SOON: Final = 0.05
"""Seconds added to a wait, so that it is over when it is looked at."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What holds now."""

    keep: Keep | None = None
    """None: demand decides."""
    invalid: str = ""
    """Why the annotation can't be read; empty when it can, or when there is none."""

    @property
    def asleep(self) -> bool:
        """Whether no replica may run."""
        return self.keep is not None and self.keep.asleep

    def minimum(self, *, least: int, most: int) -> int:
        """Replicas that run at least, given those of the spec."""
        return least if self.keep is None else max(least, min(self.keep.replicas, most))

    def wait(self, now: datetime) -> float | None:
        """Seconds after which it may be over; None when only a change ends it."""
        if self.keep is None or self.keep.until is None:
            return None
        return min(max(0.0, (self.keep.until - now).total_seconds()) + SOON, LONGEST_WAIT)


NOTHING: Final = Wish()


def wish_of(service: LLMService, *, now: datetime) -> Wish:
    """What the annotation of a service says at this moment; one that is over says nothing."""
    try:
        keep = keep_of(service.metadata.annotations)
    except KeepError as error:
        return Wish(invalid=str(error))
    return Wish(keep=keep) if keep is not None and keep.holds(now) else NOTHING
