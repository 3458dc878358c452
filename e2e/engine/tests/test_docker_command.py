"""Finding a docker command that can build as we do, and telling why one failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_engine.docker_command import DockerCommand, find_command, last_words
from noctaya_engine.engine import choose_kind
from noctaya_engine.errors import BuildFailed, EngineError, EngineUnavailable


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_first_command_that_builds_with_secrets_is_taken(tmp_path: Path) -> None:
    without = program(tmp_path, "one", "echo 'unknown flag'; exit 1")
    old = program(tmp_path, "two", "echo '--tag list'")
    able = program(tmp_path, "three", "echo '--secret stringArray'")
    assert find_command([str(tmp_path / "absent"), without, old, able]) == able


def test_when_none_can_the_message_says_what_was_looked_at_and_the_remedy(tmp_path: Path) -> None:
    old = program(tmp_path, "old", "echo '--tag list'")
    with pytest.raises(EngineUnavailable, match=r"/old\).*docker\.io"):
        find_command([old])


def test_a_command_talks_to_its_engine_with_buildkit(tmp_path: Path) -> None:
    shown = program(tmp_path, "docker", 'echo "$DOCKER_HOST $DOCKER_BUILDKIT $*"')
    docker = DockerCommand(shown, env={"DOCKER_HOST": "unix:///engine.sock"})
    assert docker("images", "-q") == "unix:///engine.sock 1 images -q"
    assert docker.environment == {"DOCKER_HOST": "unix:///engine.sock"}


def test_a_failure_ends_with_what_the_program_said(tmp_path: Path) -> None:
    failing = program(tmp_path, "docker", "cat > /dev/null; echo 'no space left' >&2; exit 3")
    docker = DockerCommand(failing, env={})
    with pytest.raises(EngineError, match="docker save failed: no space left"):
        docker("save", "image")
    (tmp_path / "context").write_text("")
    with pytest.raises(BuildFailed, match=r"(?s)build failed.*no space left"):
        docker.build("--tag=a", context=tmp_path / "context")
    assert not docker.succeeds("version")


def test_a_context_is_what_a_build_reads(tmp_path: Path) -> None:
    reading = program(tmp_path, "docker", f'cat > {tmp_path}/read; echo "$*" > {tmp_path}/arguments')
    (tmp_path / "context").write_text("the context")
    DockerCommand(reading, env={}).build("--tag=a", context=tmp_path / "context")
    assert (tmp_path / "read").read_text() == "the context"
    assert (tmp_path / "arguments").read_text() == "build --tag=a -\n"


def test_of_a_long_output_the_end_is_told() -> None:
    words = last_words("\n".join(map(str, range(100))).encode() + b"\xff\n")
    assert words.splitlines()[0] == "75"
    assert words.endswith("99�")


@pytest.mark.parametrize(
    ("env", "can_run", "kind"),
    [
        ({}, True, "private"),
        ({}, False, "system"),
        ({"NOCTAYA_ENGINE": "system"}, True, "system"),
        ({"NOCTAYA_ENGINE": "private"}, False, "private"),
    ],
)
def test_the_private_engine_is_taken_where_it_can_run_unless_said_otherwise(
    env: dict[str, str], can_run: bool, kind: str
) -> None:
    assert choose_kind(env=env, private_can_run=lambda: can_run) == kind


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(EngineUnavailable, match="NOCTAYA_ENGINE must be private or system, not 'podman'"):
        choose_kind(env={"NOCTAYA_ENGINE": "podman"})
