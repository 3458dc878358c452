"""S3 without a long-lived key: the Pod's token is exchanged for keys, which are renewed, and never shown."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from noctaya_model_hub import Effect, Hub, Match, Served
from noctaya_prewarm.errors import BadSettings, NetworkFault, NotAuthorised
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.sources.web_identity import WebIdentity

from .kit import fetch

ROLE, TOKEN = "arn:aws:iam::1:role/reader", "header.payload.signature-of-the-pod"
Identify = Callable[..., WebIdentity]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    return file


@pytest.fixture
def lending(hub: Hub) -> Hub:
    hub.lender.roles[TOKEN] = ROLE
    hub.s3_keys["somebody"] = "else"
    hub.bucket("weights", {"m/config.json": "{}"})
    return hub


class Clock:
    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def identify(served: Served, token_file: Path, clock: Clock) -> Identify:
    def made(role: str = ROLE) -> WebIdentity:
        return WebIdentity(
            role=role,
            token_file=token_file,
            endpoint=served.s3_url,
            session="test",
            context=ssl.create_default_context(),
            now=clock,
        )

    return made


def test_m3_a_model_comes_with_the_keys_that_the_pods_token_is_exchanged_for(
    served: Served, lending: Hub, target: Path, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token_file))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", served.s3_url)
    fetch(served, target, source="s3://weights/m", endpoint=served.s3_url)
    assert (target / "config.json").read_text() == "{}"
    assert len(lending.requests.of("sts")) == 1, "the keys serve for all requests"
    assert not [seen for seen in lending.requests.seen if TOKEN in seen.target]


def test_keys_are_renewed_before_they_end_with_the_token_of_that_moment(
    lending: Hub, identify: Identify, clock: Clock, token_file: Path
) -> None:
    identity = identify()
    first = identity.keys()
    clock.ahead = timedelta(minutes=40)
    assert identity.keys() == first
    lending.lender.roles = {"rotated": ROLE}
    token_file.write_text("rotated")
    clock.ahead = timedelta(minutes=50)
    assert identity.keys() != first


def test_keys_that_are_good_yet_outlive_a_service_that_is_away(
    lending: Hub, identify: Identify, clock: Clock
) -> None:
    identity = identify()
    first = identity.keys()
    lending.faults.add(Match(route="sts"), Effect(status=503))
    clock.ahead = timedelta(minutes=50)
    assert identity.keys() == first
    clock.ahead = timedelta(minutes=61)
    with pytest.raises(Retryable, match="503"):
        identity.keys()


def test_a_token_that_stands_for_another_role_is_not_authorised_and_not_shown(
    lending: Hub, identify: Identify, token_file: Path
) -> None:
    with pytest.raises(NotAuthorised, match="AccessDenied") as caught:
        identify("arn:aws:iam::1:role/other").keys()
    assert TOKEN not in str(caught.value)
    token_file.write_text("forged-token-of-nobody")
    with pytest.raises(NotAuthorised, match="InvalidIdentityToken") as caught:
        identify().keys()
    assert "forged" not in str(caught.value)


def test_no_token_no_role_and_no_sense_are_told(
    served: Served,
    lending: Hub,
    identify: Identify,
    token_file: Path,
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lending.faults.add(Match(route="sts", calls={1}), Effect(status=200, body=b"<html/>"))
    with pytest.raises(NetworkFault, match="AccessKeyId"):
        identify().keys()
    token_file.write_text("")
    with pytest.raises(BadSettings, match="no token"):
        identify().keys()
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token_file))
    with pytest.raises(BadSettings, match="AWS_ROLE_ARN"):
        fetch(served, target, source="s3://weights/m", endpoint=served.s3_url)


def test_a_secret_wins_over_the_pods_identity(
    served: Served, lending: Hub, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    (tmp_path / "AWS_ACCESS_KEY_ID").write_text("somebody")
    (tmp_path / "AWS_SECRET_ACCESS_KEY").write_text("else")
    fetch(served, target, source="s3://weights/m", endpoint=served.s3_url, secret_dir=tmp_path)
    assert lending.requests.of("sts") == []
