"""The step before the pull: one credential out of the pull secret, or an error in words."""

import json
import logging
import stat
from pathlib import Path

import pytest
from noctaya_prewarm.errors import BadSettings, PrewarmError
from noctaya_prewarm.registry_auth import login

SOURCE = f"oci://reg.example:5000/team/model@sha256:{'a' * 64}"
AUTHS = {
    "reg.example:5000": {"username": "wrong", "password": "other-secret"},
    "https://reg.example:5000/team": {"username": "right", "password": "the-secret"},
    "elsewhere.example": {"username": "x", "password": "y"},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"auths": AUTHS}))
    return path


def test_only_the_fitting_credential_reaches_the_pull(
    config: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "login" / "config.json"
    with caplog.at_level(logging.DEBUG):
        login(config=config, source=SOURCE, output=output)
    written = output.read_text()
    assert list(json.loads(written)["auths"]) == ["reg.example:5000"]
    assert "other-secret" not in written
    assert "secret" not in caplog.text
    assert stat.S_IMODE(output.stat().st_mode) & 0o007 == 0


def test_a_second_run_replaces_the_file(config: Path, tmp_path: Path) -> None:
    output = tmp_path / "config.out"
    login(config=config, source=SOURCE, output=output)
    config.write_text(json.dumps({"auths": {"reg.example:5000": {"registrytoken": "new"}}}))
    login(config=config, source=SOURCE, output=output)
    assert json.loads(output.read_text()) == {"auths": {"reg.example:5000": {"registrytoken": "new"}}}


def test_a_link_at_the_output_is_replaced_and_not_followed(config: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    output = tmp_path / "config.out"
    output.symlink_to(elsewhere)
    login(config=config, source=SOURCE, output=output)
    assert elsewhere.read_text() == "mine"
    assert not output.is_symlink()


def test_a_tag_is_as_good_as_a_digest(config: Path, tmp_path: Path) -> None:
    login(config=config, source="oci://reg.example:5000/team/model:v1", output=tmp_path / "out")
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize("source", ["hf://org/name", "oci://UPPER/x", "nonsense"])
def test_another_source_is_an_error(config: Path, tmp_path: Path, source: str) -> None:
    with pytest.raises(BadSettings):
        login(config=config, source=source, output=tmp_path / "out")


def test_a_missing_secret_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"\.dockerconfigjson"):
        login(config=tmp_path / "none", source=SOURCE, output=tmp_path / "out")


def test_an_output_that_cannot_be_written_is_an_error(config: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PrewarmError, match="file"):
        login(config=config, source=SOURCE, output=tmp_path / "file" / "config.json")
    assert (tmp_path / "file").read_text() == ""
