"""Where gateways and scalers send traces: where the operator sends its own, naming their service."""

from __future__ import annotations

from typing import Final

from noctaya_operator.plan import ServicePlan

ATTRIBUTES: Final = "OTEL_RESOURCE_ATTRIBUTES"


def tracing_env(plan: ServicePlan) -> dict[str, str]:
    """The variables; none without a collector, so that nothing is rolled out for it."""
    env = dict(plan.tracing)
    if env:
        service = f"k8s.namespace.name={plan.names.namespace},noctaya.llmservice={plan.names.service}"
        env[ATTRIBUTES] = ",".join(filter(None, (env.get(ATTRIBUTES), service)))
    return env
