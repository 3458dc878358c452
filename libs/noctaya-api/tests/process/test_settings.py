from pathlib import Path

import pytest
from noctaya_api.process.settings import SETTINGS_CONFIG, GoDuration, ListenAddress, load_settings
from pydantic import Field, model_validator
from pydantic_settings import BaseSettings


class Settings(BaseSettings):
    model_config = SETTINGS_CONFIG

    listen_addr: ListenAddress = ":8080"
    activation_timeout: GoDuration = Field(default=300.0, gt=0)
    max_queue: int = Field(default=100, gt=0)
    token_file: Path
    backend: str = Field(default="", validation_alias="OTHER_BACKEND")
    ids: list[str] = []

    @model_validator(mode="after")
    def _check(self) -> "Settings":
        if self.max_queue == 13:
            raise ValueError("NOCTAYA_MAX_QUEUE must not be unlucky")
        return self


@pytest.fixture(autouse=True)
def token_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOCTAYA_TOKEN_FILE", "/token")


def test_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOCTAYA_LISTEN_ADDR", "[::1]:0")
    monkeypatch.setenv("NOCTAYA_ACTIVATION_TIMEOUT", "1m30s")
    settings = load_settings(Settings)
    assert settings.listen_addr == "[::1]:0"
    assert settings.activation_timeout == 90.0
    assert settings.token_file == Path("/token")


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOCTAYA_MAX_QUEUE", "")
    assert load_settings(Settings).max_queue == 100


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOCTAYA_LISTEN_ADDR", "8080"),
        ("NOCTAYA_ACTIVATION_TIMEOUT", "5 minutes"),
        ("NOCTAYA_ACTIVATION_TIMEOUT", "-1s"),
        ("NOCTAYA_MAX_QUEUE", "many"),
        ("NOCTAYA_MAX_QUEUE", "0"),
        ("NOCTAYA_MAX_QUEUE", "13"),
        ("NOCTAYA_IDS", "[not json"),
    ],
)
def test_a_bad_value_stops_the_start_and_the_message_names_the_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as stopped:
        load_settings(Settings)
    assert stopped.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(name)


def test_a_missing_value_is_named_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NOCTAYA_TOKEN_FILE")
    with pytest.raises(SystemExit):
        load_settings(Settings)
    assert capsys.readouterr().err == "NOCTAYA_TOKEN_FILE: required, but not set\n"


def test_every_bad_variable_gets_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOCTAYA_MAX_QUEUE", "x")
    monkeypatch.setenv("NOCTAYA_LISTEN_ADDR", "x")
    with pytest.raises(SystemExit):
        load_settings(Settings)
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_value_that_may_hold_a_credential_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOCTAYA_MAX_QUEUE", "https://user:hunter2@host")
    with pytest.raises(SystemExit):
        load_settings(Settings)
    assert "hunter2" not in capsys.readouterr().err


def test_an_alias_is_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_BACKEND", "b")
    assert load_settings(Settings).backend == "b"
