"""Where the model of the demo lives: a process on this machine, or a Pod of a cluster."""

from typing import Protocol

Marks = list[tuple[str, float]]
"""Names of moments of a cold start and when they were, in seconds of time.monotonic()."""


class PlaceFailed(Exception):
    """What the model lives in broke, or something didn't happen in time."""


class Place(Protocol):
    """Watched by the demo while a user talks to the endpoint."""

    noun: str
    """What a running model is there."""
    zero_within: float
    """Seconds from the last answer within which it is gone."""

    def running(self) -> str | None:
        """A model that runs now, in words; None when none does."""

    def marks(self, *, after: float) -> Marks:
        """The moments of the first start after `after`, in order. Raises PlaceFailed."""

    def wait_for_zero(self, *, after: float, within: float) -> None:
        """Return when a model has gone after that moment. Raises PlaceFailed."""

    def stay(self) -> None:
        """Return at Ctrl-C. Raises PlaceFailed when it ends by itself."""
