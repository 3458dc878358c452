"""Settings of the gateway, all from the environment (contracts 3.1 and the table in this service's
README).

A bad value stops the start with a line that names the variable, the value and what is allowed; the
alpha replaced it by the default without a word. Durations are Go durations (`300ms`, `10s`, `1h30m`).
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from noctaya_api import names
from noctaya_api.process.settings import SETTINGS_CONFIG, GoDuration, ListenAddress, load_settings
from noctaya_api.process.token_file import TokenFile, TokenUnavailable
from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from noctaya_gateway.balancer import Address
from noctaya_gateway.discovery import Endpoints, parse_endpoints
from noctaya_gateway.keys import LARGEST, KeyLimits, parse_keys

DEMAND_TOKEN_LENGTH = 32
"""Shortest demand token accepted, in bytes (contracts 3.1)."""
GATEWAY_ID_BYTES = 512 - 25
"""A member id is `<gateway id>/<24 hex digits>` and at most 512 bytes (contracts 4.2)."""

Positive = Annotated[GoDuration, Field(gt=0)]
NotNegative = Annotated[GoDuration, Field(ge=0)]


def _backend_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{value!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ValueError(f"{value!r} is not an absolute http:// or https:// URL with a host")
    if parts.username or parts.password or parts.query or parts.fragment or parts.path not in ("", "/"):
        raise ValueError("only scheme, host and port are allowed, for example http://model-backend:80")
    return value


def _report_url(value: str) -> str:
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{value!r} is not an absolute http:// or https:// URL with a host")
    return value if parts.path not in ("", "/") else f"{parts.scheme}://{parts.netloc}{names.PATH_DEMAND}"


def _path(value: str) -> str:
    if not re.fullmatch(r"/[!-~]*", value):
        raise ValueError(f"{value!r} is not an absolute path of visible ASCII characters")
    return value


def _listed(value: object) -> object:
    if isinstance(value, str):
        return tuple(part for part in (piece.strip() for piece in value.split(",")) if part)
    return value


def _origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", origin):
            raise ValueError(f"{origin!r} is neither * nor an origin such as https://app.example.com")
    return origins


def _member(value: str) -> str:
    if not value or len(value.encode()) > GATEWAY_ID_BYTES:
        raise ValueError(f"must be 1 to {GATEWAY_ID_BYTES} bytes long")
    return value


def _endpoints(value: str) -> str:
    parse_endpoints(value)
    return value


Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]


class GatewaySettings(BaseSettings):
    """What one gateway process does; immutable."""

    model_config = SETTINGS_CONFIG

    backend_url: Annotated[str, AfterValidator(_backend_url)] = Field(
        description="URL of the backend Service, scheme, host and port only"
    )
    listen_addr: ListenAddress = Field(":8080", description="client and operational HTTP")
    max_queue: int = Field(100, ge=1, description="admission slots: held requests and those in flight")
    activation_timeout: Positive = Field(300.0, description="longest cold wait, and length of the lease")
    coldstart_mode: Literal["keepalive", "reject"] = Field(
        "keepalive", description="hold cold requests, or refuse them at once"
    )
    heartbeat_interval: Positive = Field(10.0, description="time between heartbeats of a held stream")
    heartbeats: bool = Field(True, description="false holds streams silently")
    progress: bool = Field(False, description="true says in heartbeats how far the cold start has come")
    client_api_key_file: Path | None = Field(
        None, description="file with one API key a line; unset switches authentication off"
    )
    key_requests_per_minute: int = Field(
        0, ge=0, le=LARGEST, description="requests a minute of each key without its own limit; 0 = no limit"
    )
    key_concurrent_requests: int = Field(
        0, ge=0, le=LARGEST, description="requests at a time of each key without its own limit; 0 = no limit"
    )
    cors_origins: Annotated[Listed, AfterValidator(_origins)] = Field(
        (), description="origins browsers may call from, comma separated, or *"
    )

    service_name: str = Field("", description="model id listed while cold; default from the backend's host")
    model_ids: Listed = Field((), description="further model ids, comma separated")

    backend_endpoints: Annotated[str, AfterValidator(_endpoints)] = Field(
        "",
        description="host:port,host:port, dns://host:port or file:///path; unset: the backend URL's own",
    )
    health_path: Annotated[str, AfterValidator(_path)] = Field(
        names.PATH_BACKEND_HEALTH, description="probe path of the backend; 200 to 299 means ready"
    )
    probe_interval: Positive = Field(0.5, description="time between probes")
    probe_fast_interval: Positive = Field(0.05, description="the same while an activation is pending")
    probe_timeout: Positive = Field(2.0, description="longest time a probe may take")
    probe_rise: int = Field(1, ge=1, description="good probes in a row that make a backend ready")
    probe_fall: int = Field(3, ge=1, description="bad probes in a row that make a ready backend unready")
    release_rate: float = Field(
        200.0, ge=0, allow_inf_nan=False, description="held requests released a second and backend; 0 = all"
    )
    ready_grace: NotNegative = Field(15.0, description="demand kept after readiness for retrying clients")
    activation_failure_file: Path | None = Field(
        None, description="file that, rewritten with text, ends a pending activation"
    )

    prewarming_file: Path | None = Field(
        None, description="file that holds text while the weights are being downloaded"
    )

    max_body_bytes: int = Field(268435456, ge=1, description="largest request body")
    max_buffered_bytes: int = Field(268435456, ge=1, description="request bytes buffered at any time, in all")
    body_timeout: Positive = Field(30.0, description="time for the first MiB of a body, then for each MiB")

    lame_duck: NotNegative = Field(5.0, description="after SIGTERM: unready but still accepting")
    drain_timeout: NotNegative = Field(20.0, description="then: time for requests in flight")

    scaler_listen_addr: ListenAddress = Field(":9090", description="ExternalScaler gRPC, without aggregator")
    scaler_tls_cert_file: Path | None = Field(None, description="server certificate chain of the scaler")
    scaler_tls_key_file: Path | None = Field(None, description="its key")
    scaler_tls_client_ca_file: Path | None = Field(
        None, description="CA bundle that client certificates need"
    )

    demand_aggregator_url: Annotated[str, AfterValidator(_report_url)] = Field(
        "", description="report demand there instead of serving the ExternalScaler"
    )
    gateway_id: Annotated[str, AfterValidator(_member)] = Field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}",
        description="member id in reports; default host name and process id",
    )
    demand_auth_token_file: Path | None = Field(None, description="token for reports, at least 32 characters")

    http_engine: Literal["protocol", "asgi"] = Field("protocol", description="how model traffic is served")
    access_log: Literal["all", "cold", "errors", "none"] = Field(
        "cold", description="requests that get a line on standard output: all, waited or failed, failed, none"
    )
    log_level: Literal["debug", "info", "warning", "error", "critical"] = Field(
        "info", description="least level"
    )

    @field_validator("client_api_key_file")
    @classmethod
    def _keys_usable(cls, path: Path | None) -> Path | None:
        if path is not None:
            parse_keys(_readable(TokenFile(path)))
        return path

    @field_validator("demand_auth_token_file")
    @classmethod
    def _token_usable(cls, path: Path | None) -> Path | None:
        if path is not None:
            _readable(TokenFile(path, min_length=DEMAND_TOKEN_LENGTH))
        return path

    @model_validator(mode="after")
    def _consistent(self) -> GatewaySettings:
        tls = {
            names.ENV_SCALER_TLS_CERT_FILE: self.scaler_tls_cert_file,
            names.ENV_SCALER_TLS_KEY_FILE: self.scaler_tls_key_file,
            names.ENV_SCALER_TLS_CLIENT_CA_FILE: self.scaler_tls_client_ca_file,
        }
        missing = [name for name, path in tls.items() if path is None]
        if 0 < len(missing) < len(tls):
            raise ValueError(f"{', '.join(missing)}: required, because scaler TLS needs all three files")
        if self.demand_aggregator_url and self.demand_auth_token_file is None:
            raise ValueError(
                f"{names.ENV_DEMAND_AUTH_TOKEN_FILE}: required when {names.ENV_DEMAND_AGGREGATOR_URL} is set"
            )
        return self

    @property
    def backend_tls(self) -> bool:
        """True for an https backend."""
        return self.backend_url.startswith("https:")

    @property
    def backend_address(self) -> Address:
        """Host and port of the backend URL, with the scheme's default port."""
        parts = urlsplit(self.backend_url)
        return Address(parts.hostname or "", parts.port or (443 if self.backend_tls else 80))

    @property
    def key_limits(self) -> KeyLimits:
        """Limits of keys that have none of their own."""
        return KeyLimits(self.key_requests_per_minute, self.key_concurrent_requests)

    @property
    def endpoints(self) -> Endpoints:
        """How backend addresses are found."""
        return parse_endpoints(self.backend_endpoints)

    @property
    def listed_models(self) -> tuple[str, ...]:
        """Ids listed while cold; the service's name first, by default the backend's first label without
        `-backend`, or its whole address.
        """
        host = self.backend_address.host
        label = host if _is_address(host) else host.split(".")[0].removesuffix("-backend")
        return (self.service_name or label, *self.model_ids)

    def warnings(self) -> list[str]:
        """What is allowed but most likely not meant."""
        found = []
        if self.heartbeats and self.heartbeat_interval >= self.activation_timeout:
            found.append(
                f"{names.ENV_HEARTBEAT_INTERVAL} is not below {names.ENV_ACTIVATION_TIMEOUT}: "
                "no heartbeat is sent"
            )
        if self.max_buffered_bytes < self.max_body_bytes:
            found.append(
                f"{names.ENV_MAX_BUFFERED_BYTES} is below {names.ENV_MAX_BODY_BYTES}: "
                "large cold bodies are refused"
            )
        return found


def load() -> GatewaySettings:
    """Settings from the environment; on a bad one prints which and exits with code 1."""
    return load_settings(GatewaySettings)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _readable(file: TokenFile) -> tuple[bytes, ...]:
    try:
        return file.tokens()
    except TokenUnavailable as error:
        raise ValueError(str(error)) from error
