"""Settings of the agent; every variable is described in the README beside this package.

What a run does comes as arguments; how it does it, and what every run in a cluster shares, comes from the
environment, as `NOCTAYA_PREWARM_*`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from noctaya_api.process.settings import GoDuration, ListenAddress
from noctaya_api.quantity import parse_quantity
from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ENV_PREFIX = "NOCTAYA_PREWARM_"
_Level = Literal["debug", "info", "warning", "error", "critical"]


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    amount = parse_quantity(value)
    if amount != amount.to_integral_value():
        raise ValueError(f"{value!r} is not a whole number of bytes")
    return int(amount)


ByteCount = Annotated[int, BeforeValidator(_bytes)]
"""Bytes; in the environment a Kubernetes quantity such as `64Mi` or `100k`."""


class AgentSettings(BaseSettings):
    """The environment, checked."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_ignore_empty=True, extra="ignore", frozen=True
    )

    listen_addr: ListenAddress = ":8080"
    termination_log: Path = Path("/dev/termination-log")
    log_level: Annotated[_Level, BeforeValidator(_lower)] = "info"
    secret_dir: Path | None = None
    """Directory of a mounted Secret; which keys are read depends on the source."""
    endpoint: str = Field(default="", pattern=r"^(https?://[^\s/?#@]+(/[^\s?#]*)?)?$")
    """Base URL of a hub's mirror or of an S3-compatible server; wins over the hubs' own variables."""
    region: str = ""
    """Region of an S3 bucket."""
    ca_file: Path | None = None
    """PEM file of certificate authorities to trust besides those of the system."""
    deadline: GoDuration = Field(default=12 * 3600.0, gt=0)
    """Longest time of one run, waiting for another agent included."""
    connections: int = Field(default=8, ge=1, le=64)
    range_size: ByteCount = Field(default=64 * 2**20, ge=2**20, le=2**30)
    """Files above this size are fetched in ranges of it, several at a time."""
    stall_timeout: GoDuration = Field(default=30.0, gt=0)
    """A connection that stays below `min_rate` for that long is given up and its range asked for again."""
    min_rate: ByteCount = Field(default=4 * 1024, ge=1)
    """Bytes a second."""
    retry_limit: GoDuration = Field(default=600.0, gt=0)
    """How long requests may fail in a row, without one byte of progress, before the run gives up."""
    max_backoff: GoDuration = Field(default=60.0, gt=0)
    """Longest pause between two tries; a longer Retry-After is honoured up to `retry_limit`."""
    disk_margin: ByteCount = Field(default=64 * 2**20, ge=0)
    """Bytes that must stay free beside the model."""
    lease: GoDuration = Field(default=30.0, ge=1)
    """An agent that gives no sign of life for that long loses the target to the next one."""
