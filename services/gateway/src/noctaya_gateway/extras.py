"""Header lines the gateway adds to a response, its own or the backend's (contracts, "Response headers")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noctaya_gateway.forward import lines_of
from noctaya_gateway.request import Request

if TYPE_CHECKING:
    from noctaya_gateway.gate import Gate
    from noctaya_gateway.limits import Permit


def extra_lines(
    gate: Gate,
    request: Request,
    *,
    activation_id: str,
    waited: float,
    permit: Permit | None,
    cors: bool,
) -> list[bytes]:
    """The lines, without their ends.

    Args:
        gate: says what browsers may read.
        request: the request answered.
        activation_id: of the activation it waited for; empty when it did not wait.
        waited: seconds it waited.
        permit: what its key was granted; None without a limit.
        cors: False for a preflight, whose answer has its own.
    """
    extra = [b"x-request-id: " + request.request_id]
    if activation_id:
        extra += (
            b"x-noctaya-cold-start: true",
            b"x-noctaya-wait-seconds: %.3f" % waited,
            b"x-noctaya-activation-id: " + activation_id.encode(),
        )
    if permit is not None:
        extra += permit.lines
    if cors and gate.cors_enabled:
        extra += lines_of(gate.cors_headers(request))
    return extra
