"""Probes of the serving container, and what follows from them for the rollout and for the gateway."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from noctaya_api import names
from noctaya_api.v1alpha1 import InferenceRuntime
from noctaya_api.v1alpha1.core import HTTPGetAction, Probe

from noctaya_operator.defaults import MAX_INT32
from noctaya_operator.kube.objects import Object

PERIOD: Final = 10
"""Seconds between attempts where a probe doesn't say; Kubernetes' default."""
FAILURES: Final = 3
"""Failures in a row where a probe doesn't say; Kubernetes' default."""
STARTUP_FAILURES: Final = 60
"""The same for the startup probe of a runtime that has none: ten minutes."""
BEFORE_START: Final = 600
"""Seconds a Pod may take to be scheduled and to pull its image; Kubernetes' default progress deadline."""
_VISIBLE: Final = "/?#[]@!$&'()*+,;=:%~-._"


def readiness_probe(runtime: InferenceRuntime) -> Object:
    """The runtime's, or a GET of /health."""
    probe = runtime.spec.health.readiness if runtime.spec.health else None
    return probe.manifest() if probe else {"httpGet": _health(runtime)}


def liveness_probe(runtime: InferenceRuntime) -> Object | None:
    """The runtime's, or none: a loading engine must not be killed for being slow."""
    probe = runtime.spec.health.liveness if runtime.spec.health else None
    return probe.manifest() if probe else None


def startup_probe(runtime: InferenceRuntime) -> Object:
    """The runtime's, or a GET of /health for ten minutes."""
    probe = _startup(runtime)
    if probe is not None:
        return probe.manifest()
    return {"httpGet": _health(runtime), "periodSeconds": PERIOD, "failureThreshold": STARTUP_FAILURES}


def progress_deadline(runtime: InferenceRuntime) -> int:
    """Seconds after which a rollout that doesn't move has failed: what the startup probe grants for loading,
    after what a Pod may take before its container runs."""
    probe = _startup(runtime)
    if probe is None:
        return BEFORE_START + PERIOD * STARTUP_FAILURES
    # Kubernetes reads zero as absent.
    loading = (probe.period_seconds or PERIOD) * (probe.failure_threshold or FAILURES)
    return max(BEFORE_START, min(BEFORE_START + (probe.initial_delay_seconds or 0) + loading, MAX_INT32))


def health_path(runtime: InferenceRuntime) -> str:
    """Path on the engine's port that tells the gateway whether it is ready.

    That of the runtime's readiness probe, or of another of its probes when that one is no plain GET of the
    engine's port; `/health` when none is.
    """
    health = runtime.spec.health
    probes = (health.readiness, health.startup, health.liveness) if health else ()
    for probe in probes:
        if probe is not None and probe.http_get is not None and _ours(probe.http_get, runtime):
            # The kubelet adds the slash; the gateway takes visible ASCII only.
            return quote(f"/{(probe.http_get.path or '/').removeprefix('/')}", safe=_VISIBLE)
    return names.PATH_BACKEND_HEALTH


def _ours(action: HTTPGetAction, runtime: InferenceRuntime) -> bool:
    port = runtime.spec.container.port
    plain = (action.scheme or "HTTP").upper() == "HTTP" and not action.host
    return plain and action.port in {port.name, port.container_port}


def _startup(runtime: InferenceRuntime) -> Probe | None:
    return runtime.spec.health.startup if runtime.spec.health else None


def _health(runtime: InferenceRuntime) -> Object:
    return {"path": names.PATH_BACKEND_HEALTH, "port": runtime.spec.container.port.name}
