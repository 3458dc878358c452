"""The scripts that run inside builds: requirements, strip, imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from noctaya_engine.places import ROOT

SCRIPTS = ROOT / "services/image"


def run(script: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", SCRIPTS / script, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    for name, text in {
        "api": 'name = "our-api"\ndependencies = ["pydantic>=2"]\n'
        "[project.optional-dependencies]\n"
        'http = ["uvicorn>=0.35", "uvloop>=0.21; sys_platform != \'win32\'"]\n'
        'grpc = ["grpcio"]\nall = ["our-api[http,grpc]"]\n',
        "service": 'name = "our-service"\ndependencies = ["our-api[http]==1.0", "fastapi>=0.115"]\n'
        '[project.optional-dependencies]\nhub = ["hub-client>=1"]\n',
        "whole": 'name = "our-whole"\ndependencies = ["our-api[all]"]\n',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text(f"[project]\n{text}")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "needs"),
    [
        (
            "service",
            {"pydantic>=2", "uvicorn>=0.35", "uvloop>=0.21; sys_platform != 'win32'", "fastapi>=0.115"},
        ),
        ("whole", {"pydantic>=2", "uvicorn>=0.35", "uvloop>=0.21; sys_platform != 'win32'", "grpcio"}),
        ("api", {"pydantic>=2"}),
        ("api[grpc]", {"pydantic>=2", "grpcio"}),
    ],
)
def test_packages_of_ours_are_replaced_by_what_they_need(
    packages: Path, target: str, needs: set[str]
) -> None:
    done = run("requirements.py", target, "api", cwd=packages)
    assert (done.stderr, set(done.stdout.splitlines())) == ("", needs)


def test_an_extra_that_is_not_there_is_an_error_with_its_name(packages: Path) -> None:
    done = run("requirements.py", "service[absent]", "api", cwd=packages)
    assert done.returncode != 0
    assert "absent" in done.stderr


def test_strip_takes_installers_and_rights_and_leaves_the_rest(tmp_path: Path) -> None:
    kept = ("usr/local/bin/python3", "usr/local/lib/python3.11/site-packages/pipeline/__init__.py", "bin/su")
    gone = (
        "usr/local/bin/pip3.11",
        "usr/local/bin/pip",
        "usr/local/lib/python3.11/ensurepip/__init__.py",
        "usr/local/lib/python3.11/site-packages/pip/__init__.py",
        "usr/local/lib/python3.11/site-packages/pip-26.3.dist-info/METADATA",
        "usr/local/lib/python3.11/site-packages/setuptools-84.0.dist-info/METADATA",
    )
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "bin/su").chmod(0o4755)
    program = (
        "import runpy, sys, pathlib\n"
        f"strip = runpy.run_path({str(SCRIPTS / 'strip.py')!r})\n"
        f"root = pathlib.Path({str(tmp_path)!r})\n"
        "strip['main'](root, root / 'usr/local')\n"
    )
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert [name for name in gone if (tmp_path / name).exists()] == []
    assert (tmp_path / "bin/su").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(("body", "code"), [("import json", 0), ("import absent_of_this_world", 1)])
def test_imports_finds_the_module_that_can_not_be_imported(tmp_path: Path, body: str, code: int) -> None:
    package = tmp_path / "trial_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("raise SystemExit('ran')")
    (package / "module.py").write_text(body)
    done = subprocess.run(
        [sys.executable, SCRIPTS / "imports.py", "trial_package"],
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert ("absent_of_this_world" in done.stderr) is bool(code)
