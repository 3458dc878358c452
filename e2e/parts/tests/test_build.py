"""Building: what is asked of Go, without asking it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from noctaya_parts import BuildError, build, gotool
from noctaya_parts.__main__ import main
from noctaya_parts.adoption import former_folder
from noctaya_parts.build import check_version, ensure
from noctaya_parts.catalogue import GROUPS, PARTS, Part
from noctaya_parts.locking import locked

HOLDER = """
import sys, time
from pathlib import Path
from noctaya_parts.locking import locked
with locked(Path(sys.argv[1]), waiting=lambda: None):
    print("held", flush=True)
    time.sleep(60)
"""
GO = """
case "$1 $2" in
"env GOVERSION") echo go1.26.0 ;;
"list -mod=readonly") printf 'one\\ntwo\\n' ;;
"build -v")
  echo "$GOMAXPROCS $GOOS $GOWORK" > "$ASKED"
  test -f go.sum && test -f go.mod || exit 9
  while [ "$1" != -o ]; do shift; done
  %s
esac
"""
HELM = GROUPS[[group.name for group in GROUPS].index("helm")]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; what Go was given by the environment is written to `asked` beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return HELM.folder


def script(file: Path, text: str) -> Path:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def makes(version: str) -> str:
    return GO % f'printf "#!/bin/sh\\necho {version}\\n" > "$2" && chmod +x "$2" ;;'


def quiet(line: str) -> None:
    assert line


def test_a_program_appears_complete_and_is_built_once(cache: Path, tmp_path: Path) -> None:
    go = script(tmp_path / "go", makes("v3.19.5+gabcdef"))
    said: list[str] = []
    path = ensure("helm", report=said.append)["helm"]
    assert path == cache / "helm"
    assert subprocess.run([path], capture_output=True, text=True, check=True).stdout == "v3.19.5+gabcdef\n"
    assert any("2 packages" in line for line in said)
    assert sorted(file.name for file in cache.iterdir()) == [".lock", "helm"]
    go.unlink()
    assert ensure("helm", report=said.append) == {"helm": path}


def test_go_uses_the_cpus_that_we_may_and_builds_for_this_machine(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.delenv("GOMAXPROCS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 5})
    script(tmp_path / "go", makes("v3.19.5"))
    ensure("helm", report=quiet)
    assert (tmp_path / "asked").read_text() == "3  off\n"


def test_what_the_compiler_says_is_in_the_error_and_nothing_appears_in_the_cache(
    cache: Path, tmp_path: Path
) -> None:
    script(tmp_path / "go", GO % 'echo "no space left on device" >&2; exit 1 ;;')
    with pytest.raises(BuildError, match="no space left on device"):
        ensure("helm", report=quiet)
    assert [file.name for file in cache.iterdir()] == [".lock"]


def test_a_program_that_says_another_version_is_refused(cache: Path, tmp_path: Path) -> None:
    script(tmp_path / "go", makes("v3.1.0"))
    with pytest.raises(BuildError, match=r"helm says 'v3\.1\.0' where 'v3\.19\.5' was built"):
        ensure("helm", report=quiet)
    assert not (cache / "helm").exists()


def test_a_program_that_cannot_be_asked_is_known_by_what_is_in_it(cache: Path, tmp_path: Path) -> None:
    keda = GROUPS[[group.name for group in GROUPS].index("keda")]
    made_of = "printf '\\tdep\\tgithub.com/kedacore/keda/v2\\tv%s\\th1:x\\n' ;;\nesac"
    head = 'case "$1 $2" in\n"env GOVERSION") echo go1.26.0 ;;\n"version -m") '
    script(tmp_path / "go", head + made_of % "2.20.2")
    check_version(keda, keda.parts[0], tmp_path / "keda-operator")
    script(tmp_path / "go", head + made_of % "2.20.1")
    with pytest.raises(BuildError, match=r"was not built from github\.com/kedacore/keda/v2@v2\.20\.2"):
        check_version(keda, keda.parts[0], tmp_path / "keda-operator")


def test_progress_is_told_while_the_compiler_says_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gotool, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(build, "PROGRESS_SECONDS", 0.05)
    told = tmp_path / "told"
    linking = f"echo one >&2; while [ ! -e {told} ]; do sleep 0.02; done; printf"
    script(tmp_path / "go", makes("v3.19.5").replace("  printf", f"  {linking}"))

    def report(line: str) -> None:
        if "1 compiled of at most 2" in line:
            told.touch()

    ensure("helm", report=report)
    assert told.exists()


def test_what_a_killed_build_left_behind_is_removed(cache: Path, tmp_path: Path) -> None:
    left = cache / ".build-killed"
    left.mkdir(parents=True)
    (left / "helm").touch()
    script(tmp_path / "go", makes("v3.19.5"))
    ensure("helm", report=quiet)
    assert not left.exists()


def test_programs_from_the_former_place_are_taken_over_without_go(cache: Path) -> None:
    former = former_folder(HELM)
    former.mkdir(parents=True)
    script(former / "helm", "echo v3.19.5")
    path = ensure("helm", report=quiet)["helm"]
    assert path.samefile(former / "helm")


def test_a_broken_program_in_the_former_place_is_built_anew(cache: Path, tmp_path: Path) -> None:
    former = former_folder(HELM)
    former.mkdir(parents=True)
    script(former / "helm", "echo v3.19.4")
    script(tmp_path / "go", makes("v3.19.5"))
    said: list[str] = []
    path = ensure("helm", report=said.append)["helm"]
    assert not path.samefile(former / "helm")
    assert any("not taken over" in line for line in said)


def test_with_everything_there_nothing_is_started_and_it_takes_no_time(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group in GROUPS:
        group.folder.mkdir(parents=True)
        for part in group.parts:
            (group.folder / part.name).touch()
    monkeypatch.setattr(subprocess, "Popen", None)
    began = time.process_time()
    assert tuple(ensure()) == PARTS
    assert time.process_time() - began < 0.05


def test_without_go_the_error_says_what_to_do(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gotool, "GO_DEFAULT", tmp_path / "go")
    with pytest.raises(BuildError, match=r"Go is not installed.*install Go 1\.26 or newer"):
        ensure("helm", report=quiet)


@pytest.mark.parametrize(
    ("version", "toolchain", "fits"),
    [("go1.25.3", "local", False), ("go1.20.1", "auto", False), ("go1.24.0", "auto", True)],
)
def test_an_old_go_is_named_unless_it_fetches_a_newer_one(
    tmp_path: Path, cache: Path, version: str, toolchain: str, fits: bool
) -> None:
    answers = f'"env GOVERSION") echo {version} ;;\n"env GOTOOLCHAIN") echo {toolchain} ;;'
    script(tmp_path / "go", f'case "$1 $2" in\n{answers}\nesac')
    if fits:
        gotool.Go()
    else:
        with pytest.raises(BuildError, match=f"{version}; Go 1.26 or newer"):
            gotool.Go()


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


def test_a_version_that_does_not_run_is_refused(tmp_path: Path) -> None:
    part = replace(HELM.parts[0])
    assert isinstance(part, Part)
    with pytest.raises(BuildError, match="does not run"):
        check_version(HELM, part, script(tmp_path / "helm", "exit 3"))


def test_the_command_builds_lists_and_refuses_names_that_there_are_not(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script(tmp_path / "go", makes("v3.19.5"))
    assert main(["build", "helm"]) == 0
    assert capsys.readouterr().out == f"{cache / 'helm'}\n"
    assert main(["list"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert " built " in rows["helm"]
    assert "not built" in rows["etcd"]
    assert main(["build", "hlem"]) == 2
    assert "no part hlem" in capsys.readouterr().err
    script(tmp_path / "go", "echo broken >&2; exit 1")
    assert main(["build", "oras"]) == 1
    assert "broken" in capsys.readouterr().err
