"""What is wrong that only gateways know: a full queue, demand that KEDA does not hear. Pure."""

from __future__ import annotations

from dataclasses import replace

from noctaya_cli.cluster.demand import GatewayNumbers
from noctaya_cli.cluster.remedies import KEDA_NOT_LISTENING, QUEUE_FULL
from noctaya_cli.cluster.service_view import Problem, ServiceView

GATEWAY = "Gateway"
"""In place of a condition's type."""


def with_trouble(
    service: ServiceView, numbers: GatewayNumbers | None, streams: int | None = None
) -> ServiceView:
    """A service with what its gateways say is wrong, after what its conditions say.

    Args:
        service: as its object tells.
        numbers: of its gateways; None when they could not be asked.
        streams: that KEDA has open to it; None when that is not known.
    """
    if numbers is None:
        return service
    found = [each for each in (_full(service, numbers), _unheard(service, numbers, streams)) if each]
    return replace(service, problems=(*service.problems, *found)) if found else service


def _full(service: ServiceView, numbers: GatewayNumbers) -> Problem | None:
    if numbers.fullest < service.slots:
        return None
    refused = f", {numbers.refused} requests refused so far" if numbers.refused else ""
    where = "the gateway" if numbers.gateways == 1 else "a gateway"
    message = f"all {service.slots} slots of {where} are taken{refused}"
    return Problem(condition=GATEWAY, reason=QUEUE_FULL, message=message)


def _unheard(service: ServiceView, numbers: GatewayNumbers, streams: int | None) -> Problem | None:
    if service.ready or streams is None or streams:
        return None
    if numbers.demand:
        message = (
            f"demand is {numbers.demand}, no replica is there, and KEDA has no stream open to this service"
        )
    elif service.phase == "ScaledToZero" and not service.keep and not service.problems:
        # While it is paused - asleep, prewarming - KEDA hangs up by itself.
        message = "KEDA has no stream open to this service: the next cold request would wait"
    else:
        return None
    return Problem(condition=GATEWAY, reason=KEDA_NOT_LISTENING, message=message)
