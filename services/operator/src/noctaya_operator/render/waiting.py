"""The init container that keeps an engine from starting on weights that are not complete."""

from __future__ import annotations

from typing import Final

from noctaya_api import names

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import security
from noctaya_operator.render.cache import cache_mount
from noctaya_operator.weights import Prewarm, Way

AGENT: Final = "noctaya-prewarm"


PATIENCE: Final = "10m"
"""How long it waits before it fails, and with it says on the service what is missing."""


def wait_for_prewarm(plan: ServicePlan, prewarm: Prewarm) -> Object:
    """Waits for the marker. The service is held at zero until the Job is done, so this is the second lock:
    for a Pod that somebody else starts, and for a cache that was emptied."""
    args = ["wait", "--marker", plan.source.ready_marker or prewarm.marker]
    if prewarm.way is not Way.HUB_CACHE:
        args += ["--source", plan.source.canonical_uri]
    return {
        "name": names.CONTAINER_WAIT_FOR_PREWARM,
        "image": plan.images.prewarm,
        "command": [AGENT],
        "args": [*args, "--timeout", PATIENCE],
        "securityContext": security.guest_container(),
        "volumeMounts": [cache_mount(read_only=True)],
    }
