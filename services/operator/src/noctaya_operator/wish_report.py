"""What the status says of a wish: the condition `Kept`, and what is asked for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from noctaya_api.conditions import KeepReason
from noctaya_api.keep import Keep, time_text
from noctaya_api.v1alpha1.llmservice_status import KeepStatus

from noctaya_operator.observe import Observation
from noctaya_operator.plan import ServicePlan


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Whether a service is as it is wanted."""

    holds: bool
    reason: KeepReason
    message: str


def keep_status(plan: ServicePlan) -> KeepStatus | None:
    """What is asked for and holds; None when demand decides."""
    keep = plan.wish.keep
    if keep is None:
        return None
    until = time_text(keep.until) if keep.until is not None else None
    return KeepStatus(state=keep.state, replicas=_wanted(plan, keep), until=until)


def kept(plan: ServicePlan, seen: Observation) -> Kept | None:
    """Whether the service is as its annotation asks; None without one that holds."""
    keep = plan.wish.keep
    if plan.wish.invalid:
        message = f"the annotation keep changes nothing: {plan.wish.invalid}"
        return Kept(holds=False, reason=KeepReason.INVALID, message=message)
    if keep is None:
        return None
    return _asleep(keep, seen) if keep.asleep else _awake(plan, keep, seen)


def asleep_message(keep: Keep | None) -> str:
    """What somebody who wants the service has to know."""
    return f"the service is put to sleep{ending(keep)}"


def ending(keep: Keep | None) -> str:
    """` until TIME`, or nothing where there is no end."""
    return f" until {time_text(keep.until)}" if keep is not None and keep.until is not None else ""


def _wanted(plan: ServicePlan, keep: Keep) -> int:
    return min(keep.replicas, plan.scaling.maximum)


def _awake(plan: ServicePlan, keep: Keep, seen: Observation) -> Kept:
    wanted, ready = _wanted(plan, keep), seen.backend.ready
    if ready >= wanted:
        message = f"at least {_replicas(wanted)} kept{ending(keep)}"
    else:
        message = f"{ready} of at least {_replicas(wanted)} ready, kept{ending(keep)}"
        if seen.held:
            message += "; none is started before the weights are there"
    if wanted < keep.replicas:
        message += f"; {keep.replicas} are asked for, and scaling.max is {plan.scaling.maximum}"
    return Kept(
        holds=ready >= wanted,
        reason=KeepReason.AWAKE if ready >= wanted else KeepReason.WAKING,
        message=message,
    )


def _asleep(keep: Keep, seen: Observation) -> Kept:
    # Pods may be seen gone before the Deployment says so, and the phase follows the Deployment.
    backend = seen.backend
    running = max(len(backend.pods), backend.desired, backend.replicas, backend.ready)
    if not running and not seen.ending:
        return Kept(holds=True, reason=KeepReason.ASLEEP, message=f"no replica runs{ending(keep)}")
    parts = []
    if running:
        parts.append(f"{running} {'replicas are' if running > 1 else 'replica is'} still to be stopped")
    if seen.ending:
        parts.append(f"{seen.ending} Pod{'s are' if seen.ending > 1 else ' is'} finishing requests")
    return Kept(holds=False, reason=KeepReason.FALLING_ASLEEP, message="; ".join(parts) + ending(keep))


def _replicas(count: int) -> str:
    return f"{count} replica{'s are' if count > 1 else ' is'}"
