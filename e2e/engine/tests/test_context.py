"""The context of a build: what is declared, nothing else, the same bytes for the same files."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from noctaya_engine.context import collect, write_tar


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for name in (
        "service/src/package/module.py",
        "service/src/package/__pycache__/module.pyc",
        "service/tests/test_module.py",
        "service/Dockerfile",
        "secret.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def context(root: Path, target: Path, *inputs: str, **parts: Path) -> tuple[str, list[str]]:
    digest = write_tar(collect(root, inputs, parts), target)
    with tarfile.open(target) as tar:
        return digest, tar.getnames()


def test_it_holds_the_declared_inputs_without_tests_and_caches(root: Path, tmp_path: Path) -> None:
    _, names = context(root, tmp_path / "context.tar", "service")
    assert names == ["service/Dockerfile", "service/src/package/module.py"]


def test_the_digest_changes_with_content_name_and_mode_and_with_nothing_else(
    root: Path, tmp_path: Path
) -> None:
    target, module = tmp_path / "context.tar", root / "service/src/package/module.py"
    first, _ = context(root, target, "service")
    os.utime(module, (1, 1))
    module.chmod(0o600)
    (root / "secret.txt").write_text("changed")
    assert context(root, target, "service")[0] == first
    module.chmod(0o755)
    executable, _ = context(root, target, "service")
    assert executable != first
    module.write_text("changed")
    changed, _ = context(root, target, "service")
    assert changed not in {first, executable}
    module.rename(module.with_name("other.py"))
    assert context(root, target, "service")[0] not in {first, executable, changed}


def test_parts_stand_beside_the_inputs(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "built-program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    _, names = context(root, tmp_path / "context.tar", "service/Dockerfile", oras=program)
    assert names == ["parts/oras", "service/Dockerfile"]


def test_a_declared_input_that_is_not_there_is_named(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match="service/absent is declared"):
        collect(root, ("service/absent",), {})
