from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_gateway import settings as settings_module
from noctaya_gateway.balancer import Address
from noctaya_gateway.settings import GatewaySettings

URL = "http://qwen-backend.models.svc:80"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("NOCTAYA_")]:
        monkeypatch.delenv(name)


def load(monkeypatch: pytest.MonkeyPatch, **environment: str) -> GatewaySettings:
    for name, value in {"BACKEND_URL": URL, **environment}.items():
        monkeypatch.setenv(f"NOCTAYA_{name}", value)
    return settings_module.load()


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **environment: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        load(monkeypatch, **environment)
    assert exit_.value.code == 1
    return capsys.readouterr().err


def test_defaults_are_those_of_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(monkeypatch)
    assert (loaded.listen_addr, loaded.scaler_listen_addr) == (":8080", ":9090")
    assert (loaded.max_queue, loaded.activation_timeout, loaded.heartbeat_interval) == (100, 300.0, 10.0)
    assert (loaded.coldstart_mode, loaded.heartbeats, loaded.health_path) == ("keepalive", True, "/health")
    assert (loaded.probe_interval, loaded.probe_fast_interval, loaded.probe_timeout) == (0.5, 0.05, 2.0)
    assert (loaded.probe_rise, loaded.probe_fall) == (1, 3)
    assert (loaded.max_body_bytes, loaded.max_buffered_bytes, loaded.body_timeout) == (1 << 28, 1 << 28, 30)
    assert (loaded.lame_duck, loaded.drain_timeout, loaded.ready_grace) == (5.0, 20.0, 15.0)
    assert (loaded.release_rate, loaded.http_engine, loaded.log_level) == (200.0, "protocol", "info")
    assert loaded.backend_address == Address("qwen-backend.models.svc", 80)
    assert loaded.listed_models == ("qwen",)
    assert loaded.client_api_key_file is None
    assert loaded.demand_aggregator_url == ""
    assert "-" in loaded.gateway_id


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BACKEND_URL", "backend:80"),
        ("BACKEND_URL", "ftp://backend"),
        ("BACKEND_URL", "http://"),
        ("BACKEND_URL", "http://backend:99999"),
        ("BACKEND_URL", "http://backend:0"),
        ("BACKEND_URL", "http://backend/base"),
        ("BACKEND_URL", "http://user:secret@backend"),
        ("LISTEN_ADDR", "8080"),
        ("MAX_QUEUE", "0"),
        ("MAX_QUEUE", "-1"),
        ("MAX_QUEUE", "many"),
        ("ACTIVATION_TIMEOUT", "0s"),
        ("ACTIVATION_TIMEOUT", "300"),
        ("ACTIVATION_TIMEOUT", "-5m"),
        ("COLDSTART_MODE", "hold"),
        ("HEARTBEAT_INTERVAL", "0"),
        ("HEARTBEATS", "perhaps"),
        ("CLIENT_API_KEY_FILE", "/nowhere/api-key"),
        ("SCALER_LISTEN_ADDR", "localhost"),
        ("DEMAND_AGGREGATOR_URL", "aggregator:9091"),
        ("GATEWAY_ID", "x" * 488),
        ("HEALTH_PATH", "health"),
        ("HEALTH_PATH", "/he alth"),
        ("BACKEND_ENDPOINTS", "10.0.0.1"),
        ("BACKEND_ENDPOINTS", "dns://name"),
        ("PROBE_INTERVAL", "0s"),
        ("PROBE_FAST_INTERVAL", "soon"),
        ("PROBE_TIMEOUT", "1d"),
        ("PROBE_RISE", "0"),
        ("PROBE_FALL", "0"),
        ("MAX_BODY_BYTES", "0"),
        ("MAX_BUFFERED_BYTES", "256MiB"),
        ("BODY_TIMEOUT", "0s"),
        ("LAME_DUCK", "-1s"),
        ("DRAIN_TIMEOUT", "x"),
        ("RELEASE_RATE", "-1"),
        ("RELEASE_RATE", "nan"),
        ("READY_GRACE", "-1s"),
        ("CORS_ORIGINS", "example.com"),
        ("CORS_ORIGINS", "https://example.com/path"),
        ("HTTP_ENGINE", "fast"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_g1_of_contracts_a_bad_value_stops_the_start_naming_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    message = refused(monkeypatch, capsys, **{name: value})
    assert message.startswith(f"NOCTAYA_{name}: ")
    assert len(message.splitlines()) == 1
    assert "secret" not in message


def test_g1_of_contracts_a_backend_url_is_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(monkeypatch, capsys, BACKEND_URL="")
    assert message.startswith("NOCTAYA_BACKEND_URL: required")


def test_every_bad_value_is_named_in_one_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(monkeypatch, capsys, MAX_QUEUE="0", PROBE_FALL="0", LAME_DUCK="x")
    for name in ("NOCTAYA_MAX_QUEUE", "NOCTAYA_PROBE_FALL", "NOCTAYA_LAME_DUCK"):
        assert name in message


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_a_blank_key_file_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str
) -> None:
    path = tmp_path / "api-key"
    path.write_text(content)
    assert "NOCTAYA_CLIENT_API_KEY_FILE" in refused(monkeypatch, capsys, CLIENT_API_KEY_FILE=str(path))


def test_reporting_needs_a_token_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(monkeypatch, capsys, DEMAND_AGGREGATOR_URL="http://scaler:9091/v1/demand")
    assert "NOCTAYA_DEMAND_AUTH_TOKEN_FILE" in message


def test_the_demand_token_is_32_characters_at_least_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("short-but-private")
    message = refused(
        monkeypatch,
        capsys,
        DEMAND_AGGREGATOR_URL="http://scaler:9091/v1/demand",
        DEMAND_AUTH_TOKEN_FILE=str(path),
    )
    assert "NOCTAYA_DEMAND_AUTH_TOKEN_FILE" in message
    assert "private" not in message
    path.write_text("t" * 32 + "\n")
    loaded = load(monkeypatch)
    assert loaded.demand_auth_token_file == path
    assert loaded.demand_aggregator_url == "http://scaler:9091/v1/demand"


def test_an_aggregator_url_without_a_path_means_the_report_endpoint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("t" * 32)
    for given in ("http://scaler:9091", "http://scaler:9091/"):
        loaded = load(monkeypatch, DEMAND_AGGREGATOR_URL=given, DEMAND_AUTH_TOKEN_FILE=str(path))
        assert loaded.demand_aggregator_url == "http://scaler:9091/v1/demand"


def test_scaler_tls_is_all_three_files_or_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(monkeypatch, capsys, SCALER_TLS_CERT_FILE="/tls.crt", SCALER_TLS_KEY_FILE="/tls.key")
    assert "NOCTAYA_SCALER_TLS_CLIENT_CA_FILE" in message
    assert "NOCTAYA_SCALER_TLS_CERT_FILE" not in message


def test_lists_and_names_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(
        monkeypatch,
        BACKEND_URL="https://10.0.0.9",
        SERVICE_NAME="chat",
        MODEL_IDS=" org/a , b,",
        CORS_ORIGINS="https://a.example.com, http://localhost:3000",
        BACKEND_ENDPOINTS="10.0.0.1:8000, [fd00::1]:8000",
    )
    assert loaded.backend_tls
    assert loaded.backend_address == Address("10.0.0.9", 443)
    assert loaded.listed_models == ("chat", "org/a", "b")
    assert loaded.cors_origins == ("https://a.example.com", "http://localhost:3000")
    assert loaded.endpoints.static == (Address("10.0.0.1", 8000), Address("fd00::1", 8000))


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(monkeypatch, MAX_QUEUE="", CLIENT_API_KEY_FILE="", CORS_ORIGINS="")
    assert loaded.max_queue == 100
    assert loaded.client_api_key_file is None
    assert loaded.cors_origins == ()


def test_what_is_allowed_but_hardly_meant_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(monkeypatch, HEARTBEAT_INTERVAL="10s", ACTIVATION_TIMEOUT="5s", MAX_BUFFERED_BYTES="10")
    heartbeats, buffers = loaded.warnings()
    assert heartbeats.startswith("NOCTAYA_HEARTBEAT_INTERVAL is not below NOCTAYA_ACTIVATION_TIMEOUT")
    assert buffers.startswith("NOCTAYA_MAX_BUFFERED_BYTES is below NOCTAYA_MAX_BODY_BYTES")
    monkeypatch.setenv("NOCTAYA_HEARTBEATS", "false")
    monkeypatch.setenv("NOCTAYA_MAX_BODY_BYTES", "10")
    assert settings_module.load().warnings() == []


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1"),
        ("http://[fd00::7]:8000", "fd00::7"),
        ("http://qwen-backend.models.svc", "qwen"),
        ("http://10.example.com", "10"),
    ],
)
def test_g3_a_service_without_a_name_is_listed_by_its_backends(
    monkeypatch: pytest.MonkeyPatch, url: str, listed: str
) -> None:
    assert load(monkeypatch, BACKEND_URL=url).listed_models == (listed,)
