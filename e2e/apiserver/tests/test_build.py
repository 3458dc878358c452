"""Building the binaries: what is asked of Go, without asking it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from noctaya_apiserver import BuildError, build, gotool, keda
from noctaya_apiserver.build import Part, check_version, ensure_binaries, ldflags, wrapper_module
from noctaya_apiserver.locking import locked

GO_MOD = """
module k8s.io/kubernetes

require (
\tk8s.io/api v0.0.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl
\texample.com/other => example.com/fork v1.0.0
)

replace k8s.io/alone => ./staging/src/k8s.io/alone
"""
HOLDER = """
import sys, time
from pathlib import Path
from noctaya_apiserver.locking import locked
with locked(Path(sys.argv[1]), waiting=lambda: None):
    print("held", flush=True)
    time.sleep(60)
"""


def test_every_staged_module_is_replaced_by_its_published_version() -> None:
    lines = wrapper_module(GO_MOD).splitlines()
    assert [line for line in lines if line.startswith("replace")] == [
        "replace k8s.io/api => k8s.io/api v0.34.4",
        "replace k8s.io/kubectl => k8s.io/kubectl v0.34.4",
        "replace k8s.io/alone => k8s.io/alone v0.34.4",
    ]
    assert "require k8s.io/kubernetes v1.34.4" in lines


def test_a_go_mod_without_staged_modules_is_an_error() -> None:
    with pytest.raises(BuildError, match="replaces nothing"):
        wrapper_module("module k8s.io/kubernetes\n")


def test_the_version_is_linked_in() -> None:
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in ldflags()
    assert "version.gitMinor=34" in ldflags()


def test_without_go_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gotool, "GO_DEFAULT", tmp_path / "go")
    with pytest.raises(BuildError, match=r"Go is not installed.*install Go 1\.24 or newer"):
        ensure_binaries(folder=tmp_path / "cache", report=lambda line: None)


def test_an_old_go_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "go", 'echo "go1.21.3"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(BuildError, match=r"go1\.21\.3; Go 1\.24 or newer"):
        gotool.Go()


def test_what_the_compiler_says_is_in_the_error_and_nothing_appears_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go.mod").write_text(GO_MOD)
    answers = (
        'case "$1 $2" in\n'
        '"env GOVERSION") echo go1.26.0 ;;\n'
        f'"mod download") echo \'{{"GoMod": "{tmp_path}/go.mod", "Dir": "{tmp_path}"}}\' ;;\n'
        '"mod tidy") ;;\n'
        '"list -deps") echo one ;;\n'
        '"build -v") echo "no space left on device" >&2; exit 1 ;;\n'
        "esac"
    )
    script(tmp_path / "go", answers)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    cache = tmp_path / "cache"
    said: list[str] = []
    with pytest.raises(BuildError, match="no space left on device"):
        ensure_binaries(folder=cache, report=said.append)
    assert [file.name for file in cache.iterdir()] == [".lock"]
    assert any("etcd" in line for line in said)


def test_a_binary_of_another_version_is_refused(tmp_path: Path) -> None:
    binary = script(tmp_path / "etcd", 'echo "etcd Version: 3.5.0"')
    part = Part("etcd", "example.com/etcd", "etcd Version: 3.6.4")
    with pytest.raises(BuildError, match=r"3\.5\.0"):
        check_version(part, binary)


def test_binaries_in_the_cache_need_no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in build.PARTS:
        (tmp_path / part.name).touch()
    monkeypatch.setattr(build, "Go", None)
    assert ensure_binaries(folder=tmp_path).etcd == tmp_path / "etcd"


def test_a_second_build_waits_for_the_first_and_a_dead_one_holds_nobody_up(tmp_path: Path) -> None:
    file, waited = tmp_path / "lock", []
    argv = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def waiting() -> None:
            waited.append(True)
            holder.kill()

        with locked(file, waiting=waiting):
            assert waited == [True]


def test_kedas_patches_are_carried_out() -> None:
    document = {"a": {"list": [{"required": ["x"]}], "gone": 1}}
    keda.patch(
        document,
        [
            {"op": "add", "path": "/a/list/0/required/-", "value": "y"},
            {"op": "add", "path": "/a/minimum", "value": 0},
            {"op": "remove", "path": "/a/gone"},
        ],
    )
    assert document == {"a": {"list": [{"required": ["x", "y"]}], "minimum": 0}}
    with pytest.raises(BuildError, match="'move'"):
        keda.patch(document, [{"op": "move", "path": "/a/minimum", "from": "/b"}])


def script(file: Path, text: str) -> Path:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file
