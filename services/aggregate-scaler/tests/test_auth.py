import logging
from pathlib import Path

import pytest
from noctaya_aggregate_scaler.auth import ROTATION_OVERLAP, ReportAuthenticator, TokenUnavailable
from noctaya_api.process.token_file import TokenFile

OLD, NEW, NEXT = "o" * 43, "n" * 44, "x" * 45


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(OLD)
    return path


@pytest.fixture
def authenticator(path: Path, clock: Clock) -> ReportAuthenticator:
    return ReportAuthenticator(TokenFile(path, min_length=32), clock=clock)


def bearer(token: str) -> bytes:
    return f"Bearer {token}".encode()


def test_a12_the_token_is_trimmed_in_the_file_and_exact_in_the_header(
    path: Path, authenticator: ReportAuthenticator
) -> None:
    path.write_text(f" {OLD} \n")
    assert authenticator.accepts(bearer(OLD))
    assert not authenticator.accepts(bearer(f" {OLD}"))
    assert not authenticator.accepts(None)


def test_s2_both_tokens_of_the_file_are_accepted(path: Path, authenticator: ReportAuthenticator) -> None:
    path.write_text(f"{OLD}\n{NEW}\n")
    assert authenticator.accepts(bearer(OLD))
    assert authenticator.accepts(bearer(NEW))


def test_s2_the_token_before_a_change_stays_good_for_the_overlap(
    path: Path, authenticator: ReportAuthenticator, clock: Clock
) -> None:
    assert authenticator.accepts(bearer(OLD))
    path.write_text(NEW)
    assert authenticator.accepts(bearer(NEW))
    assert authenticator.accepts(bearer(OLD))
    clock.now += ROTATION_OVERLAP - 0.001
    assert authenticator.accepts(bearer(OLD))
    clock.now = ROTATION_OVERLAP
    assert not authenticator.accepts(bearer(OLD))
    assert authenticator.accepts(bearer(NEW))


def test_only_one_generation_back_is_good(
    path: Path, authenticator: ReportAuthenticator, clock: Clock
) -> None:
    authenticator.check()
    for token in (NEW, NEXT):
        path.write_text(token)
        authenticator.check()
    assert authenticator.accepts(bearer(NEW))
    assert not authenticator.accepts(bearer(OLD))


def test_writing_the_same_token_again_is_no_change(
    path: Path, authenticator: ReportAuthenticator, clock: Clock
) -> None:
    authenticator.check()
    path.write_text(NEW)
    authenticator.check()
    clock.now = ROTATION_OVERLAP - 1
    path.write_text(f"{NEW}\n")
    authenticator.check()
    clock.now = ROTATION_OVERLAP
    assert not authenticator.accepts(bearer(OLD))


def test_a_file_that_went_bad_refuses_everyone_logs_once_and_recovers(
    path: Path, authenticator: ReportAuthenticator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    authenticator.check()
    path.write_text("short")
    for _ in range(3):
        with pytest.raises(TokenUnavailable):
            authenticator.accepts(bearer(OLD))
    path.write_text(NEW)
    assert authenticator.accepts(bearer(NEW))
    assert authenticator.accepts(bearer(OLD))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "short" not in caplog.records[0].getMessage().split("token", 1)[0]
