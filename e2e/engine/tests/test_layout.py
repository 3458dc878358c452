"""What the private engine's programs are told: nothing of the machine's own is used or changed."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path

import pytest
from noctaya_engine.base import ensure_bases
from noctaya_engine.errors import BuildFailed
from noctaya_engine.keeper import remove_cgroups
from noctaya_engine.layout import PRIVATE, Layout
from noctaya_engine.sbom import parse_go_version

LAYOUT = Layout(Path("/cache/engine"))


def test_every_path_is_the_engine_s_own() -> None:
    config = tomllib.loads(LAYOUT.containerd_config())
    paths = [config["root"], config["state"], config["grpc"]["address"]]
    command = LAYOUT.dockerd_command()
    values = dict(itertools.pairwise(command))
    paths += [
        values[name] for name in ("--config-file", "--data-root", "--exec-root", "--pidfile", "--containerd")
    ]
    paths.append(values["--host"].removeprefix("unix://"))
    assert [path for path in paths if not path.startswith((f"{LAYOUT.folder}/", f"{PRIVATE}/"))] == []


def test_the_machine_s_network_is_left_alone() -> None:
    command = LAYOUT.dockerd_command()
    for flag in (
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-forward=false",
        "--ip-masq=false",
    ):
        assert flag in command


def test_the_build_cache_is_bounded() -> None:
    assert json.loads(LAYOUT.dockerd_config())["builder"]["gc"]["enabled"] is True


def test_engines_of_different_folders_have_different_cgroups() -> None:
    assert LAYOUT.cgroup == Layout(LAYOUT.folder).cgroup != Layout(Path("/other")).cgroup


def test_only_the_cgroups_of_that_name_are_removed(tmp_path: Path) -> None:
    for name in ("memory/engine-1/container", "memory/engine-10", "engine-1", "cpu/docker/engine-1"):
        (tmp_path / name).mkdir(parents=True)
    remove_cgroups("engine-1", tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "cpu",
        "cpu/docker",
        "cpu/docker/engine-1",
        "memory",
        "memory/engine-10",
    ]


def test_base_images_are_refused_without_root_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(BuildFailed, match="--engine system"):
        ensure_bases(report=lambda line: None)


def test_modules_of_a_go_program_are_read_with_their_replacements() -> None:
    told = (
        "oras: go1.26.8\n\tpath\toras.land/oras/cmd/oras\n\tmod\tnoctaya.io/oras\t(devel)\t\n"
        "\tdep\toras.land/oras\tv1.3.0\th1:x=\n\tdep\texample.com/a\tv1.0.0\n\t=>\texample.com/b\tv2.0.0\th1:y=\n"
        "\tbuild\t-compiler=gc\n"
    )
    assert parse_go_version(told) == [("oras.land/oras", "v1.3.0"), ("example.com/b", "v2.0.0")]
