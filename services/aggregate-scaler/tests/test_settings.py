from pathlib import Path

import pytest
from noctaya_aggregate_scaler.settings import ScalerSettings
from noctaya_api.externalscaler.tls import TlsFiles
from noctaya_api.process.settings import load_settings

TLS = ("NOCTAYA_SCALER_TLS_CERT_FILE", "NOCTAYA_SCALER_TLS_KEY_FILE", "NOCTAYA_SCALER_TLS_CLIENT_CA_FILE")


@pytest.fixture(autouse=True)
def token_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOCTAYA_DEMAND_AUTH_TOKEN_FILE", "/token")


def test_the_defaults_are_the_contracts() -> None:
    settings = load_settings(ScalerSettings)
    assert settings == ScalerSettings(
        aggregator_listen_addr=":9091",
        scaler_listen_addr=":9090",
        max_gateway_members=1024,
        max_gateway_demand=100,
        expected_gateway_members=None,
        demand_auth_token_file=Path("/token"),
        drain_timeout=5.0,
        log_level="info",
    )
    assert settings.tls_files() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOCTAYA_MAX_GATEWAY_MEMBERS", "0"),
        ("NOCTAYA_MAX_GATEWAY_MEMBERS", "-1"),
        ("NOCTAYA_MAX_GATEWAY_DEMAND", "many"),
        ("NOCTAYA_MAX_GATEWAY_DEMAND", "1.5"),
        ("NOCTAYA_EXPECTED_GATEWAY_MEMBERS", "0"),
        ("NOCTAYA_AGGREGATOR_LISTEN_ADDR", "9091"),
        ("NOCTAYA_SCALER_LISTEN_ADDR", ":grpc"),
        ("NOCTAYA_DRAIN_TIMEOUT", "soon"),
        ("NOCTAYA_LOG_LEVEL", "loud"),
        ("NOCTAYA_DEMAND_AUTH_TOKEN_FILE", ""),
    ],
)
def test_a_bad_value_stops_the_start_naming_the_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as stopped:
        load_settings(ScalerSettings)
    assert stopped.value.code == 1
    assert capsys.readouterr().err.startswith(name)


@pytest.mark.parametrize("missing", TLS)
def test_a11_some_but_not_all_tls_files_stop_the_start_naming_the_missing_one(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in TLS:
        monkeypatch.setenv(name, "" if name == missing else "/file")
    with pytest.raises(SystemExit) as stopped:
        load_settings(ScalerSettings)
    assert stopped.value.code == 1
    assert missing in capsys.readouterr().err


def test_all_three_tls_files_are_mutual_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TLS:
        monkeypatch.setenv(name, f"/{name}")
    assert load_settings(ScalerSettings).tls_files() == TlsFiles(*(Path(f"/{name}") for name in TLS))


def test_a_level_may_be_written_in_capitals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOCTAYA_LOG_LEVEL", "DEBUG")
    assert load_settings(ScalerSettings).log_level == "debug"
