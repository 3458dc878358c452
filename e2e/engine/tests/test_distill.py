"""A run-time root from an installed tree, on a small tree of our own."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from noctaya_engine.distill import PYTHON, PYTHON_SHELL, Recipe, distill, wanted

RECIPE = Recipe("trial", roots=("program",), programs=("usr/bin/program",))


@pytest.mark.parametrize(
    ("path", "in_python", "in_shell"),
    [
        ("usr/bin/python3.11", True, True),
        ("usr/bin/python3-config", False, True),
        ("bin/sh", False, True),
        ("usr/bin/sleep", False, True),
        ("usr/sbin/ldconfig", False, False),
        ("usr/lib/x86_64-linux-gnu/libssl.so.3", True, True),
        ("usr/lib/x86_64-linux-gnu/gconv/UTF-7.so", False, False),
        ("usr/share/doc/python3/copyright", True, True),
        ("usr/share/doc/python3/changelog.gz", False, False),
        ("usr/share/man/man1/python3.1.gz", False, False),
        ("etc/services", True, True),
    ],
)
def test_libraries_data_and_licences_stay_programs_only_when_named(
    path: str, in_python: bool, in_shell: bool
) -> None:
    assert wanted(Path(path), PYTHON.programs) is in_python
    assert wanted(Path(path), PYTHON_SHELL.programs) is in_shell


@pytest.fixture
def full(tmp_path: Path) -> Path:
    tree = tmp_path / "full"
    owned = {
        "program": ("usr/bin/program", "usr/bin/helper", "usr/lib/program/module.py", "lib/library.so.1"),
        "unrelated": ("usr/lib/unrelated.so",),
    }
    info = tree / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    stanzas = []
    for package, files in owned.items():
        for file in files:
            place = tree / file.replace("lib/library", "usr/lib/library")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(file)
        (info / f"{package}.list").write_text("".join(f"/{file}\n" for file in ("usr", *files, "usr/gone")))
        stanzas.append(f"Package: {package}\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n")
    (tree / "var/lib/dpkg/status").write_text("\n".join(stanzas))
    (tree / "lib").symlink_to("usr/lib")
    compiled = tree / "usr/lib/program/__pycache__/module.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_text("bytecode")
    (tree / "usr/bin/program").chmod(0o4755)
    for name in ("passwd", "group", "nsswitch.conf", "debian_version", "ld.so.conf"):
        place = tree / "etc" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("root:x:0:\n" if name in {"passwd", "group"} else "")
    authorities = tree / "etc/ssl/certs/ca-certificates.crt"
    authorities.parent.mkdir(parents=True)
    authorities.write_text("certificates")
    locale = tree / "usr/lib/locale/C.utf8/LC_CTYPE"
    locale.parent.mkdir(parents=True)
    locale.write_text("")
    return tree


@pytest.fixture
def root(full: Path, tmp_path: Path) -> Path:
    target = tmp_path / "root"
    target.mkdir()
    assert [package.name for package in distill(full, target, RECIPE)] == ["program"]
    return target


def test_it_holds_the_files_of_the_packages_and_of_no_other(root: Path) -> None:
    assert (root / "usr/lib/program/module.py").exists()
    assert (root / "lib/library.so.1").read_text() == "lib/library.so.1"
    assert not (root / "usr/lib/unrelated.so").exists()
    assert not (root / "usr/bin/helper").exists()


def test_merged_folders_stay_links(root: Path) -> None:
    assert (root / "lib").readlink() == Path("usr/lib")


def test_no_program_gains_rights(root: Path) -> None:
    assert stat.S_IMODE((root / "usr/bin/program").stat().st_mode) == 0o755


def test_modules_keep_their_bytecode(root: Path) -> None:
    assert (root / "usr/lib/program/__pycache__/module.cpython-311.pyc").read_text() == "bytecode"


def test_what_is_inside_is_recorded_for_scanners(root: Path) -> None:
    assert "Package: program" in (root / "var/lib/dpkg/status.d/program").read_text()


def test_certificates_are_where_openssl_looks_and_the_user_has_a_name(root: Path) -> None:
    assert (root / "usr/lib/ssl/cert.pem").readlink() == Path("/etc/ssl/certs/ca-certificates.crt")
    assert (root / "etc/ssl/certs/ca-certificates.crt").read_text() == "certificates"
    assert "nonroot:x:65532:65532:" in (root / "etc/passwd").read_text()
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777
