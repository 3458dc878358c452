"""Settings of the aggregate scaler; every variable is described in the README beside this package."""

from pathlib import Path
from typing import Annotated, Literal

from noctaya_api import names
from noctaya_api.externalscaler.tls import TlsFiles
from noctaya_api.process.settings import SETTINGS_CONFIG, GoDuration, ListenAddress
from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings

_Level = Literal["debug", "info", "warning", "error", "critical"]


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class ScalerSettings(BaseSettings):
    """The environment, checked."""

    model_config = SETTINGS_CONFIG

    aggregator_listen_addr: ListenAddress = f":{names.AGGREGATOR_PORT}"
    scaler_listen_addr: ListenAddress = f":{names.SCALER_GRPC_PORT}"
    max_gateway_members: int = Field(default=1024, gt=0)
    max_gateway_demand: int = Field(default=100, gt=0)
    expected_gateway_members: int | None = Field(default=None, gt=0)
    demand_auth_token_file: Path
    scaler_tls_cert_file: str = ""
    scaler_tls_key_file: str = ""
    scaler_tls_client_ca_file: str = ""
    drain_timeout: GoDuration = Field(default=5.0, ge=0)
    log_level: Annotated[_Level, BeforeValidator(_lower)] = "info"

    @model_validator(mode="after")
    def _tls_is_whole(self) -> "ScalerSettings":
        self.tls_files()
        return self

    def tls_files(self) -> TlsFiles | None:
        """The TLS files, or None for plaintext."""
        return TlsFiles.from_paths(
            cert=self.scaler_tls_cert_file,
            key=self.scaler_tls_key_file,
            client_ca=self.scaler_tls_client_ca_file,
        )
