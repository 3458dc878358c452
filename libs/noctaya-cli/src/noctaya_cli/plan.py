"""What will be run for one LLMService: plain values, everything resolved. Made by planning.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from noctaya_cli.expansion import expand, expand_environment
from noctaya_cli.probes import Probes
from noctaya_cli.scaling import ScalingPolicy

PORT_VARIABLE = "PORT"
NO_PROBES = Probes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """The serving container as a local process.

    `command` and `arguments` may still hold `$(NAME)` references. `container_port` is the port of the
    manifest; a replica gets a port of its own instead, see `command_line`. `drain` and `grace` are seconds.
    """

    command: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    container_port: int = 8000
    probes: Probes = NO_PROBES
    drain: float = 0.0
    grace: float = 30.0

    def process_environment(self, *, port: int, base: Mapping[str, str]) -> dict[str, str]:
        """`base`, then the container's own variables, then PORT (ours wins, the replica has no other)."""
        own = expand_environment(self.environment, given={PORT_VARIABLE: str(port)})
        return {**base, **own, PORT_VARIABLE: str(port)}

    def command_line(self, *, port: int) -> list[str]:
        """Command and arguments of a replica that serves on `port`.

        References see the container's own variables and PORT, as in Kubernetes, not the user's whole
        environment. The container's port after `--port` becomes the replica's: in a cluster every Pod has
        an address of its own, here replicas share one and need different ports.
        """
        variables = self.process_environment(port=port, base={})
        words = [expand(word, variables) for word in (*self.command, *self.arguments)]
        fixed = str(self.container_port)
        for index, word in enumerate(words):
            if word == f"--port={fixed}":
                words[index] = f"--port={port}"
            elif word == fixed and index > 0 and words[index - 1] == "--port":
                words[index] = str(port)
        return words

    @property
    def fixed_port(self) -> str:
        """The words of the manifest that `command_line` rewrites (`--port 8000`).

        Empty when there are none.
        """
        words = (*self.command, *self.arguments)
        fixed = str(self.container_port)
        if f"--port={fixed}" in words:
            return f"--port={fixed}"
        return f"--port {fixed}" if ("--port", fixed) in pairwise(words) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPlan:
    """What the gateway needs to know. Durations are seconds."""

    max_queue: int = 100
    cold_start_mode: str = "keepalive"
    heartbeat_interval: float = 10.0
    activation_timeout: float = 300.0
    drain_timeout: float = 120.0
    health_path: str = "/health"
    api_key_file: Path | None = None
    optional: Mapping[str, str] = field(default_factory=dict)
    """Gateway variables that the manifest sets beyond the gateway's own defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """One LLMService, ready to run. `notes` say what is different from a cluster."""

    name: str
    namespace: str
    runtime: str
    model: str
    container: ContainerPlan
    endpoint: EndpointPlan
    scaling: ScalingPolicy
    notes: tuple[str, ...] = ()
