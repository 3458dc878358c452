"""What is inside an image, and what must not be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest
from noctaya_engine.archive import Archive, Entry, opened
from noctaya_engine.catalog import IMAGES, VERSION
from noctaya_engine.images import Built
from noctaya_engine.trials import Trial

SHELLS = {"ash", "bash", "busybox", "csh", "dash", "ksh", "sh", "zsh"}
TOOLS = {
    "apk",
    "apt",
    "apt-get",
    "ar",
    "as",
    "cc",
    "curl",
    "dpkg",
    "g++",
    "gcc",
    "git",
    "ld",
    "make",
    "perl",
    "wget",
}
INSTALLERS = {"ensurepip", "pip", "pkg_resources", "setuptools", "wheel"}
PROGRAMS = re.compile(r"(?:usr/(?:local/)?|opt/noctaya/)?s?bin/[^/]+")
SITE = re.compile(r"opt/noctaya/lib/python3\.\d+/site-packages/(?P<inside>.+)")
OCI = "org.opencontainers.image."


@pytest.fixture
def files(archive: Archive) -> dict[str, Entry]:
    return archive.files()


def programs(files: dict[str, Entry]) -> set[str]:
    return {PurePosixPath(name).name for name in files if PROGRAMS.fullmatch(name)}


def site_packages(files: dict[str, Entry]) -> Iterator[tuple[str, Entry]]:
    for name, entry in files.items():
        if match := SITE.fullmatch(name):
            yield match["inside"], entry


def test_nothing_gains_rights_by_being_run(files: dict[str, Entry]) -> None:
    assert [name for name, entry in files.items() if entry.info.isfile() and entry.info.mode & 0o6000] == []


def test_nothing_belongs_to_the_user_or_can_be_written_by_everybody(files: dict[str, Entry]) -> None:
    assert {name for name, entry in files.items() if entry.info.uid == 65532} == set()
    writable = {name for name, entry in files.items() if not entry.info.issym() and entry.info.mode & 0o002}
    assert writable == {"tmp", "var/tmp"}


def test_there_is_a_shell_only_where_drain_hooks_need_one(files: dict[str, Entry], trial: Trial) -> None:
    found = SHELLS & programs(files)
    assert found == ({"sh", "dash"} if trial.shell else set())
    assert ("sleep" in programs(files)) is trial.shell


def test_there_are_no_build_tools_and_no_installers(files: dict[str, Entry]) -> None:
    assert TOOLS & programs(files) == set()
    assert not [name for name in programs(files) if name.rstrip("0123456789.") == "pip"]
    packages = {PurePosixPath(name).name for name in files if "/python3" in name}
    assert INSTALLERS & packages == set()


def test_no_cache_of_a_package_manager_is_left(files: dict[str, Entry]) -> None:
    assert not [
        name
        for name in files
        if re.match(r"(var/cache|var/lib/apt|root/\.cache|etc/pip\.conf|src|wheels)\b", name)
    ]


def test_only_the_operator_has_a_kubernetes_client(files: dict[str, Entry], trial: Trial) -> None:
    found = any(name == "kubernetes" for name, _ in site_packages(files))
    assert found is (trial.image == "operator")


def test_every_module_is_compiled_and_never_looked_at_again(
    archive: Archive, files: dict[str, Entry]
) -> None:
    """PEP 552: flags 1 say that the bytecode is valid whatever the source's time or content."""
    modules = {
        f"opt/noctaya/{name}" for name in files if name.startswith("opt/noctaya/") and name.endswith(".py")
    }
    modules = {name.removeprefix("opt/noctaya/") for name in modules}
    missing, compiled = [], {}
    for name in modules:
        path = PurePosixPath(name)
        codes = [f"{path.parent}/__pycache__/{path.stem}.cpython-{minor}.pyc" for minor in range(311, 316)]
        code = next((code for code in codes if code in files), None)
        if code is None:
            missing.append(name)
        else:
            compiled[code] = name
    assert missing == []
    ours = {code for code in compiled if "/site-packages/noctaya_" in code}
    assert ours
    for name, content in archive.read(files, ours).items():
        assert int.from_bytes(content[4:8], "little") == 1, name


def test_it_runs_one_program_without_a_shell_as_a_numeric_user(
    archive: Archive, files: dict[str, Entry]
) -> None:
    config = archive.config["config"]
    assert config["User"] == "65532:65532"
    (program,) = config["Entrypoint"]
    assert files[program.lstrip("/")].info.mode & 0o111 == 0o111
    assert not config.get("Cmd")
    assert not config.get("Healthcheck")
    assert files["opt/noctaya/LICENSE"].info.isfile()


def test_its_labels_say_what_it_is(archive: Archive, trial: Trial) -> None:
    labels = {name.removeprefix(OCI): value for name, value in archive.labels.items() if name.startswith(OCI)}
    assert labels.keys() == {
        "title",
        "description",
        "version",
        "revision",
        "created",
        "source",
        "vendor",
        "licenses",
        "base.name",
    }
    assert labels["version"] == VERSION
    assert labels["licenses"] == "Apache-2.0"
    assert labels["source"].startswith("https://")
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", labels["revision"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels["created"])
    assert archive.references == [IMAGES[trial.image].reference]


def test_images_share_the_layer_of_their_base(built: dict[str, Built]) -> None:
    bases: dict[str, set[str]] = {}
    for name, image in built.items():
        base = IMAGES[name].base
        if base is not None:
            with opened(image.tar) as archive:
                bases.setdefault(base, set()).add(archive.config["rootfs"]["diff_ids"][0])
    assert bases
    assert all(len(layers) == 1 for layers in bases.values()), bases


def test_the_stand_in_for_oras_is_one_program_of_the_version_in_its_name(built: dict[str, Built]) -> None:
    with opened(built["oras"].tar) as archive:
        files = archive.files()
        assert [name for name, entry in files.items() if entry.info.isfile()] == ["bin/oras"]
        assert archive.config["config"]["User"] == "65532:65532"
        assert IMAGES["oras"].reference.endswith(f":v{archive.labels[f'{OCI}version']}")
