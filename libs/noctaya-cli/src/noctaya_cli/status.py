"""What is shown of a service, and the rules that name its phase (the ones of `status.phase` in a cluster).

Pure.
"""

from dataclasses import dataclass
from enum import StrEnum

from noctaya_cli.replica import Replica, ReplicaPhase
from noctaya_cli.timeline import Activation

RESTARTS_OF_A_FAILURE = 2
"""From this many restarts on a replica that isn't ready counts as failing (contracts 1.2)."""


class Phase(StrEnum):
    """Summary of a service; the same words as in the LLMService status."""

    PENDING = "Pending"
    LOADING = "Loading"
    READY = "Ready"
    SCALED_TO_ZERO = "ScaledToZero"
    DEGRADED = "Degraded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """A snapshot. `demand` and `pending` are None while the gateway doesn't answer."""

    name: str
    url: str
    model: str
    runtime: str
    phase: Phase
    reason: str
    ready: int
    replicas: int
    maximum: int
    leaving: int
    demand: int | None
    pending: int | None
    activation: Activation | None


def classify_phase(replicas: list[Replica], *, minimum: int) -> tuple[Phase, str]:
    """Phase and, when there is something to say, why. `replicas` are the live ones."""
    if any(replica.phase is ReplicaPhase.READY for replica in replicas):
        return Phase.READY, ""
    for replica in replicas:
        if replica.phase is ReplicaPhase.BACKOFF or replica.restarts >= RESTARTS_OF_A_FAILURE:
            return Phase.DEGRADED, f"{replica.name}: {replica.reason}" if replica.reason else replica.name
    if replicas:
        return Phase.LOADING, ""
    return (Phase.SCALED_TO_ZERO, "") if minimum == 0 else (Phase.PENDING, "")
