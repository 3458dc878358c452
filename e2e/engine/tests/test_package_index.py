"""pip's and uv's settings as secrets of a build."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_engine.package_index import CA_IN_BUILD, PackageIndex, machine_settings


def settings(tmp_path: Path, *texts: str, **env: str) -> PackageIndex:
    files = []
    for number, text in enumerate(texts):
        files.append(tmp_path / f"{number}.conf")
        files[-1].write_text(text)
    return machine_settings(env=env, files=tuple(files), home=tmp_path)


def pip(index: PackageIndex) -> list[str]:
    return index.secrets["pip"].decode().splitlines()


def test_later_files_win_over_earlier_ones_and_the_environment_over_all(tmp_path: Path) -> None:
    files = (
        "[global]\nindex-url = https://first/simple\ntimeout = 5\n",
        "[global]\nindex-url = https://second/simple\n[install]\nextra_index_url = https://extra/simple\n",
    )
    assert pip(settings(tmp_path, *files)) == [
        "[global]",
        "index-url = https://second/simple",
        "extra-index-url = https://extra/simple",
        "timeout = 5",
    ]
    assert "index-url = https://mine/simple" in pip(
        settings(tmp_path, *files, PIP_INDEX_URL="https://mine/simple")
    )


def test_uv_speaks_where_pip_is_silent(tmp_path: Path) -> None:
    assert "index-url = https://uv/simple" in pip(settings(tmp_path, UV_DEFAULT_INDEX="https://uv/simple"))
    both = settings(tmp_path, "[global]\nindex-url = https://pip/simple\n", UV_INDEX_URL="https://uv/simple")
    assert "index-url = https://pip/simple" in pip(both)


def test_several_values_stay_several(tmp_path: Path) -> None:
    found = settings(tmp_path, "[global]\ntrusted-host =\n    one.example\n    two.example\n")
    assert "trusted-host = one.example two.example" in pip(found)


def test_paths_of_this_machine_are_left_out(tmp_path: Path) -> None:
    found = settings(tmp_path, PIP_FIND_LINKS="/opt/wheels file:///opt/wheels https://wheels.example/x")
    assert "find-links = https://wheels.example/x" in pip(found)
    assert pip(settings(tmp_path, PIP_FIND_LINKS="/opt/wheels")) == ["[global]"]


def test_the_bundle_of_authorities_goes_along_as_a_file_of_its_own(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("authorities")
    for found in (
        settings(tmp_path, f"[global]\ncert = {bundle}\n"),
        settings(tmp_path, PIP_CERT=str(bundle)),
        settings(tmp_path, REQUESTS_CA_BUNDLE=str(bundle)),
        settings(tmp_path, SSL_CERT_FILE=str(bundle)),
    ):
        assert found.secrets["ca"] == b"authorities"
        assert f"cert = {CA_IN_BUILD}" in pip(found)


def test_a_bundle_that_is_not_there_is_not_promised(tmp_path: Path) -> None:
    found = settings(tmp_path, SSL_CERT_FILE=str(tmp_path / "absent.pem"))
    assert found.secrets.keys() == {"pip"}
    assert pip(found) == ["[global]"]


def test_credentials_of_netrc_go_along(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine index.example login a password b\n")
    assert settings(tmp_path).secrets["netrc"].startswith(b"machine index.example")
    other = tmp_path / "other"
    other.write_text("machine other.example login a password b\n")
    assert settings(tmp_path, NETRC=str(other)).secrets["netrc"].startswith(b"machine other.example")


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_proxies_become_build_arguments_in_docker_s_spelling(tmp_path: Path, name: str) -> None:
    assert settings(tmp_path, **{name: "http://proxy:3128"}).build_args == {
        "HTTPS_PROXY": "http://proxy:3128"
    }


def test_options_that_no_build_needs_stay_here(tmp_path: Path) -> None:
    assert pip(
        settings(tmp_path, "[global]\nuser = true\nlog = /var/log/pip\nrequire-virtualenv = true\n")
    ) == ["[global]"]
