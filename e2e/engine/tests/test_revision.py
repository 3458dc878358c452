"""The commit an image is made from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from noctaya_engine.revision import UNKNOWN_TIME, Revision, revision_of

ENV = {
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+02:00",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+02:00",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "service")
    return tmp_path


def git(root: Path, *arguments: str) -> str:
    named = ("-c", "user.name=Test", "-c", "user.email=test@example.com")
    done = subprocess.run(["git", "-C", root, *named, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(root: Path, name: str) -> str:
    (root / name).write_text(f"{name}\n")
    git(root, "add", name)
    git(root, "commit", "--quiet", "--message", name)
    return git(root, "rev-parse", "HEAD")


def test_it_is_the_last_commit_that_touched_the_inputs_in_utc(repository: Path) -> None:
    of_service = git(repository, "rev-parse", "HEAD")
    commit(repository, "elsewhere")
    assert revision_of(repository, ("service",)) == Revision(of_service, "2026-01-02T01:04:05Z")


def test_changed_inputs_make_it_dirty_and_changes_elsewhere_do_not(repository: Path) -> None:
    (repository / "elsewhere").write_text("")
    assert not revision_of(repository, ("service",)).commit.endswith("-dirty")
    (repository / "service").write_text("changed")
    assert revision_of(repository, ("service",)).commit.endswith("-dirty")


def test_outside_a_repository_it_is_unknown(tmp_path: Path) -> None:
    assert revision_of(tmp_path, ("service",)) == Revision("unknown", UNKNOWN_TIME)
