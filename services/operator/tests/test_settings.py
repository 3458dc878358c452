"""Flags and environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_operator.defaults import Defaults, Images
from noctaya_operator.settings import OperatorSettings, flag, load_settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in OperatorSettings.model_fields:
        monkeypatch.delenv(f"NOCTAYA_{field.upper()}", raising=False)


def test_the_defaults_are_those_of_the_contract() -> None:
    settings = load_settings([])
    assert settings.health_probe_bind_address == ":8081"
    assert settings.metrics_bind_address == "0"
    assert settings.leader_elect is False
    assert settings.defaults({}) == Defaults()
    assert settings.namespaces == ()


def test_every_setting_has_a_flag_and_the_flag_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOCTAYA_GATEWAY_IMAGE", "from-env")
    monkeypatch.setenv("NOCTAYA_ORAS_IMAGE", "oras@sha256:1")
    settings = load_settings(
        ["--gateway-image=from-flag", "--gateway-replicas", "2", "--leader-elect", "--namespaces", "a, b"]
    )
    assert settings.defaults({}) == Defaults(
        images=Images(gateway="from-flag", oras="oras@sha256:1"), gateway_replicas=2
    )
    assert settings.leader_elect is True
    assert settings.namespaces == ("a", "b")
    assert load_settings(["--leader-elect=false"]).leader_elect is False


def test_gateways_send_traces_where_the_operator_does_but_get_no_credential() -> None:
    settings = load_settings([])
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret",
        "OTEL_SERVICE_NAME": "the-operator",
    }
    assert settings.defaults(environ).tracing == (
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
    )
    named = load_settings(["--traces-headers-secret=collector"])
    assert named.defaults(environ).traces_headers_secret == "collector"
    del environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    assert settings.defaults(environ).tracing == ()
    assert named.defaults(environ).traces_headers_secret == "", "without traces there are no headers"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--gateway-replicas=0"], "--gateway-replicas (NOCTAYA_GATEWAY_REPLICAS): "),
        (["--gateway-replicas=-1"], "--gateway-replicas"),
        (["--gateway-replicas=2147483648"], "--gateway-replicas"),
        (["--gateway-image= "], "--gateway-image (NOCTAYA_GATEWAY_IMAGE): an image must be named"),
        (["--health-probe-bind-address=nowhere"], "--health-probe-bind-address"),
        (["--metrics-bind-address=:99999"], "--metrics-bind-address"),
        (["--leader-elect=perhaps"], "--leader-elect"),
        (["--lease-duration=soon"], "--lease-duration"),
        (["--traces-headers-secret=team/x"], "--traces-headers-secret (NOCTAYA_TRACES_HEADERS_SECRET): "),
        (["--log-level=loud"], "--log-level"),
    ],
)
def test_r15_a_bad_value_ends_the_process_naming_flag_and_variable(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        load_settings(arguments)
    assert ended.value.code == 1
    assert told in capsys.readouterr().err


def test_an_unknown_flag_is_refused_and_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        load_settings(["--gateway-imag=x"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        load_settings(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(flag(field) in text for field in OperatorSettings.model_fields)


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        load_settings(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("noctaya-operator ")


def test_addresses_can_be_switched_off() -> None:
    settings = load_settings(["--health-probe-bind-address=0", "--metrics-bind-address=127.0.0.1:0"])
    assert (settings.health_probe_bind_address, settings.metrics_bind_address) == ("0", "127.0.0.1:0")


def test_the_lease_is_where_the_pod_is(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert load_settings([]).lease_namespace(file) == "noctaya-system"
    file.write_text("ours\n")
    assert load_settings([]).lease_namespace(file) == "ours"
    assert load_settings(["--leader-election-namespace=told"]).lease_namespace(file) == "told"
