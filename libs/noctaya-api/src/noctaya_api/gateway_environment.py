"""The gateway settings of a manifest that are set only where it departs from the gateway's own defaults.

What every gateway is told stands where gateways are made: in the operator and in `noctaya run`. These are for
both. A setting that is left at its default is not written, so that a new one changes no running Pod.
"""

from __future__ import annotations

from noctaya_api import names
from noctaya_api.v1alpha1.llmservice_scaling import AccessLog, Endpoint


def optional_environment(endpoint: Endpoint) -> dict[str, str]:
    """Variables and their values."""
    found: dict[str, str] = {}
    if not endpoint.cold_start.heartbeats:
        found[names.ENV_HEARTBEATS] = "false"
    if endpoint.cold_start.progress:
        found[names.ENV_PROGRESS] = "true"
    if endpoint.access_log is not AccessLog.COLD:
        found[names.ENV_ACCESS_LOG] = str(endpoint.access_log)
    limits = endpoint.authentication.limits if endpoint.authentication is not None else None
    if limits is not None and limits.requests_per_minute is not None:
        found[names.ENV_KEY_REQUESTS_PER_MINUTE] = str(limits.requests_per_minute)
    if limits is not None and limits.concurrent_requests is not None:
        found[names.ENV_KEY_CONCURRENT_REQUESTS] = str(limits.concurrent_requests)
    return found
