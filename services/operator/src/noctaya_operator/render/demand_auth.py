"""The Secret with the token that gateways present to the aggregate scaler."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import StepReason

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.plan_error import PlanError
from noctaya_operator.render.metadata import backend_selector, frame

TOKEN_BYTES: Final = 32
MIN_TOKEN_LENGTH: Final = 32
"""Shortest token that gateway and scaler take."""


def new_demand_token() -> str:
    """A fresh token: 32 random bytes in 43 characters of URL-safe base64."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def render_demand_secret(plan: ServicePlan, *, token: str) -> Object:
    """The Secret. Its token only ever gets into the cluster by the creation of the Secret."""
    secret = frame(plan.names.demand_secret, labels=backend_selector(plan))
    data = {names.DEMAND_TOKEN_KEY: base64.b64encode(token.encode()).decode()}
    return {**secret, "type": "Opaque", "data": data}


def check_demand_secret(secret: Mapping[str, Any]) -> None:
    """Raises PlanError when a stored Secret holds no usable token: every report would be refused.

    Several tokens may stand there, one a line, while they are rotated.
    """
    data = secret.get("data")
    encoded = data.get(names.DEMAND_TOKEN_KEY) if isinstance(data, Mapping) else None
    try:
        text = base64.b64decode(encoded or "", validate=True).decode()
    except (binascii.Error, TypeError, ValueError):
        text = ""
    tokens = [line for line in map(str.strip, text.splitlines()) if line]
    if not tokens or min(map(len, tokens)) < MIN_TOKEN_LENGTH:
        name = secret.get("metadata", {}).get("name")
        raise PlanError(
            StepReason.DEMAND_AUTHENTICATION,
            f"the Secret {name!r} has no key {names.DEMAND_TOKEN_KEY!r} with a token of at least "
            f"{MIN_TOKEN_LENGTH} characters; delete the Secret and it is made anew",
        )
