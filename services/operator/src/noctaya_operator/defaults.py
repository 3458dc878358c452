"""What the operator's own settings contribute to every service: images, the number of gateways, traces.

One value for the whole cluster, fixed for the life of the process: a change means a restart of the operator
and a rollout of the gateways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GATEWAY_IMAGE: Final = "ghcr.io/noctaya/noctaya-gateway:0.5.0"
AGGREGATE_SCALER_IMAGE: Final = "ghcr.io/noctaya/noctaya-aggregate-scaler:0.5.0"
PREWARM_IMAGE: Final = "ghcr.io/noctaya/noctaya-prewarm-agent:0.5.0"
ORAS_IMAGE: Final = "ghcr.io/oras-project/oras:v1.3.0"

MAX_INT32: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images of the containers that are ours; tags and digests both do."""

    gateway: str = GATEWAY_IMAGE
    aggregate_scaler: str = AGGREGATE_SCALER_IMAGE
    prewarm: str = PREWARM_IMAGE
    oras: str = ORAS_IMAGE


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """Cluster-wide settings of everything rendered."""

    images: Images = Images()
    gateway_replicas: int = 1
    """Gateways of each service; 0 counts as 1."""
    tracing: tuple[tuple[str, str], ...] = ()
    """Environment by which gateways and scalers send traces, as names and values; empty for no traces."""
    traces_headers_secret: str = ""
    """Secret in each service's namespace with headers for the trace collector; empty for none."""

    def __post_init__(self) -> None:
        """Raises ValueError when no Deployment could have that many replicas."""
        if not 0 <= self.gateway_replicas <= MAX_INT32:
            raise ValueError(
                f"the number of gateway replicas must lie between 0 and {MAX_INT32}, "
                f"not be {self.gateway_replicas}"
            )

    @property
    def gateways(self) -> int:
        """Gateways of each service, at least one."""
        return max(1, self.gateway_replicas)
