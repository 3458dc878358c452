"""What the operator is told: flags, and for each the environment variable `NOCTAYA_...` of the same name.

A flag wins over its variable. Flags are written as Go programs take them: `--name value`, `--name=value`,
and for switches `--name` or `--name=false`.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from noctaya_api.process.listen import parse_listen
from noctaya_api.process.settings import SETTINGS_CONFIG, GoDuration, explain
from noctaya_api.process.telemetry import ENDPOINT_VARIABLES
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode

from noctaya_operator.defaults import (
    AGGREGATE_SCALER_IMAGE,
    GATEWAY_IMAGE,
    MAX_INT32,
    ORAS_IMAGE,
    PREWARM_IMAGE,
    Defaults,
    Images,
)

PROGRAM: Final = "noctaya-operator"
OFF: Final = "0"
"""Address that means: do not listen."""
NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE: Final = "noctaya-system"
TRACING_VARIABLES: Final = (
    *ENDPOINT_VARIABLES,
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
)
"""What gateways and scalers are given too. Headers are not among them, since they may hold a credential."""
SECRET_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
SECRET_NAME_LIMIT: Final = 253


def _address(value: str) -> str:
    if value in {"", OFF}:
        return OFF
    parse_listen(value)
    return value


def _names(value: object) -> object:
    if isinstance(value, str):
        return tuple(name for name in (part.strip() for part in value.split(",")) if name)
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _secret_name(value: str) -> str:
    if value and (len(value) > SECRET_NAME_LIMIT or not SECRET_NAME.fullmatch(value)):
        raise ValueError("not a name that a Secret can have")
    return value


def _image(value: str) -> str:
    if not value.strip():
        raise ValueError("an image must be named")
    return value.strip()


Address = Annotated[str, AfterValidator(_address)]
Image = Annotated[str, AfterValidator(_image)]
_Level = Literal["debug", "info", "warning", "error", "critical"]


class OperatorSettings(BaseSettings):
    """Flags and environment, checked; the description of a field is the help of its flag."""

    model_config = SETTINGS_CONFIG

    kubeconfig: str = Field(
        default="",
        description="kubeconfig file; without it KUBECONFIG, the Pod's service account, or ~/.kube/config",
    )
    context: str = Field(default="", description="context of the kubeconfig; the current one if empty")
    namespaces: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = Field(
        default=(), description="namespaces to work in, separated by commas; all if empty"
    )
    gateway_image: Image = Field(default=GATEWAY_IMAGE, description="image of the gateways")
    aggregate_scaler_image: Image = Field(
        default=AGGREGATE_SCALER_IMAGE, description="image of the aggregate scalers"
    )
    prewarm_image: Image = Field(default=PREWARM_IMAGE, description="image of the prewarm agent")
    oras_image: Image = Field(
        default=ORAS_IMAGE, description="image of the ORAS client that pulls oci:// models"
    )
    gateway_replicas: int = Field(
        default=1,
        ge=1,
        le=MAX_INT32,
        description="gateways of each service; above 1 with an aggregate scaler",
    )
    workers: int = Field(default=4, ge=1, le=64, description="services worked on at once")
    leader_elect: bool = Field(default=False, description="let one of several operators work at a time")
    leader_election_namespace: str = Field(
        default="", description="namespace of the Lease; the Pod's own if empty"
    )
    lease_duration: GoDuration = Field(
        default=15.0, ge=1.0, description="after which others take a lease that is not renewed"
    )
    renew_deadline: GoDuration = Field(
        default=10.0, gt=0, description="after which a leader that can't renew stops"
    )
    retry_period: GoDuration = Field(default=2.0, gt=0, description="between two attempts to renew")
    health_probe_bind_address: Address = Field(
        default=":8081", description="address of /healthz and /readyz; 0 for none"
    )
    metrics_bind_address: Address = Field(
        default=OFF, description="address of /metrics over plain HTTP, for example :8080; 0 for none"
    )
    traces_headers_secret: Annotated[str, AfterValidator(_secret_name)] = Field(
        default="",
        description="Secret in the namespace of each service whose key `headers` gateways and scalers "
        "send to the trace collector; none if empty",
    )
    log_level: Annotated[_Level, BeforeValidator(_lower)] = Field(
        default="info", description="debug, info, warning, error or critical"
    )

    def defaults(self, environ: Mapping[str, str] = os.environ) -> Defaults:
        """What the settings, and the OTEL variables of our own traces, contribute to every service."""
        traced = any(environ.get(name) for name in ENDPOINT_VARIABLES)
        return Defaults(
            images=Images(
                gateway=self.gateway_image,
                aggregate_scaler=self.aggregate_scaler_image,
                prewarm=self.prewarm_image,
                oras=self.oras_image,
            ),
            gateway_replicas=self.gateway_replicas,
            tracing=tuple(
                (name, value) for name in TRACING_VARIABLES if traced and (value := environ.get(name))
            ),
            traces_headers_secret=self.traces_headers_secret if traced else "",
        )

    def lease_namespace(self, file: Path = NAMESPACE_FILE) -> str:
        """Where the Lease is: as told, the Pod's namespace, or `noctaya-system` outside of a cluster."""
        return self.leader_election_namespace or pod_namespace(file) or DEFAULT_NAMESPACE


def pod_namespace(file: Path = NAMESPACE_FILE) -> str:
    """The namespace of this process's Pod; empty outside of a cluster."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def identity(suffix: str) -> str:
    """Who this process is among several, as controller-runtime writes it."""
    return f"{socket.gethostname()}_{suffix}"


def flag(field: str) -> str:
    """The flag of a setting."""
    return f"--{field.replace('_', '-')}"


def parse_flags(arguments: Sequence[str]) -> Mapping[str, str]:
    """The settings given as flags. Ends the process for --help, --version and unknown flags."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Turns LLMServices into gateways, backends and autoscaling, and reports how they are.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    for name, info in OperatorSettings.model_fields.items():
        options: dict[str, Any] = {"default": argparse.SUPPRESS, "metavar": "VALUE"}
        if info.annotation is bool:
            options |= {"nargs": "?", "const": "true"}
        default = ",".join(info.default) if isinstance(info.default, tuple) else info.default
        text = f"{info.description} (NOCTAYA_{name.upper()}; default: {default if default != '' else 'none'})"
        parser.add_argument(flag(name), dest=name, help=text.replace("%", "%%"), **options)
    return vars(parser.parse_args(list(arguments)))


def load_settings(arguments: Sequence[str]) -> OperatorSettings:
    """Read flags and environment, or say what is wrong with which of them and end the process.

    Raises:
        SystemExit: code 1 for a bad value, 2 for an unknown flag, 0 after --help and --version.
    """
    given = parse_flags(arguments)
    try:
        return OperatorSettings(**given)  # type: ignore[arg-type]  # validated from text
    except ValidationError as error:
        for line in explain(OperatorSettings, error):
            name, _, problem = line.partition(": ")
            field = name.removeprefix("NOCTAYA_").lower()
            shown = f"{flag(field)} ({name})" if field in OperatorSettings.model_fields else name
            print(f"{shown}: {problem}", file=sys.stderr)
    raise SystemExit(1)
