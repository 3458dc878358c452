"""The gateway of a service as a process: its command and its environment. Pure but for finding the program.

The gateway is run like any replica (replica.py), from a plan that says how.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from noctaya_api import names
from noctaya_api.duration import format_duration

from noctaya_cli.plan import ContainerPlan, ServicePlan
from noctaya_cli.probes import HttpGet, Probe, Probes

PROGRAM = "noctaya-gateway"
EXIT_ALLOWANCE = 10.0
"""Seconds the gateway gets beyond its own drain budget before it is killed."""
BACKEND = "http://localhost"
"""The required backend URL: scheme and Host header of probes. The addresses come from the endpoints file."""


class GatewayMissing(Exception):
    """The gateway program isn't installed."""


def find_gateway() -> Path:
    """`noctaya-gateway` next to the running interpreter, else on PATH; raises GatewayMissing."""
    beside = Path(sys.executable).with_name(PROGRAM)
    if beside.is_file():
        return beside
    found = shutil.which(PROGRAM)
    if found is None:
        raise GatewayMissing(f"{PROGRAM} is not installed: it is neither in {beside.parent} nor on PATH")
    return Path(found)


def plan_gateway(
    service: ServicePlan,
    *,
    program: Path,
    listen: tuple[str, int],
    scaler_port: int,
    endpoints_file: Path,
    failure_file: Path,
    overrides: Mapping[str, str],
) -> ContainerPlan:
    """The gateway's process. `overrides` (`--gateway-env`) win over what the manifest says."""
    endpoint = service.endpoint
    host, port = listen
    drain = endpoint.drain_timeout
    environment = {
        names.ENV_BACKEND_URL: BACKEND,
        names.ENV_BACKEND_ENDPOINTS: endpoints_file.as_uri(),
        names.ENV_LISTEN_ADDR: f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        names.ENV_SCALER_LISTEN_ADDR: f"127.0.0.1:{scaler_port}",
        names.ENV_SERVICE_NAME: service.name,
        names.ENV_HEALTH_PATH: endpoint.health_path,
        names.ENV_MAX_QUEUE: str(endpoint.max_queue),
        names.ENV_ACTIVATION_TIMEOUT: format_duration(endpoint.activation_timeout),
        names.ENV_COLDSTART_MODE: endpoint.cold_start_mode,
        names.ENV_HEARTBEAT_INTERVAL: format_duration(endpoint.heartbeat_interval),
        names.ENV_DRAIN_TIMEOUT: format_duration(drain),
        names.ENV_LAME_DUCK: "0s",  # no load balancer in front that would have to notice first
        names.ENV_ACTIVATION_FAILURE_FILE: str(failure_file),
    }
    if endpoint.api_key_file is not None:
        environment[names.ENV_CLIENT_API_KEY_FILE] = str(endpoint.api_key_file)
    environment |= endpoint.optional
    environment |= overrides
    alive = HttpGet(path=names.PATH_HEALTHZ, port=port, host="" if host in {"", "0.0.0.0", "::"} else host)  # noqa: S104
    return ContainerPlan(
        command=(str(program),),
        environment=tuple((name, value.replace("$", "$$")) for name, value in environment.items()),
        container_port=port,
        probes=Probes(startup=Probe(alive, period=1.0, failure_threshold=60)),
        grace=drain + EXIT_ALLOWANCE,
    )
