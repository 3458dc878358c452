"""Finding an API server and staying authenticated to it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_apiserver import FakeApiServer
from noctaya_operator.kube.access import (
    AccessError,
    InClusterAccess,
    KubeconfigAccess,
    StaticAccess,
    find_access,
)
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import Unauthorized
from noctaya_operator.kube.resources import PODS


def write_kubeconfig(path: Path, server: str, user: dict[str, Any], *, context: str = "main") -> Path:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": context, "cluster": {"server": server}}],
                "users": [{"name": context, "user": user}],
                "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
                "current-context": context,
            }
        )
    )
    return path


def service_account(folder: Path, token: str) -> dict[str, Path]:
    files = {"token_file": folder / "token", "ca_file": folder / "ca.crt"}
    files["token_file"].write_text(token)
    files["ca_file"].write_text("certificate")
    return files


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def test_a_token_of_a_kubeconfig_is_sent_and_read_again_when_refused(
    fake_apiserver: FakeApiServer, tmp_path: Path
) -> None:
    fake_apiserver.api.tokens = {"first"}
    path = write_kubeconfig(tmp_path / "config", fake_apiserver.url, {"token": "first"})
    client = await KubeClient.connect(path)
    try:
        await client.list(PODS)
        fake_apiserver.api.tokens = {"second"}
        write_kubeconfig(path, fake_apiserver.url, {"token": "second"})
        await asyncio.gather(*(client.list(PODS) for _ in range(5)))
    finally:
        await client.close()


async def test_a_token_file_is_trimmed_and_read_again_when_refused(
    fake_apiserver: FakeApiServer, tmp_path: Path
) -> None:
    fake_apiserver.api.tokens = {"first"}
    (tmp_path / "token").write_text("first\n")
    path = write_kubeconfig(tmp_path / "config", fake_apiserver.url, {"tokenFile": "token"})
    client = await KubeClient.connect(path)
    try:
        await client.list(PODS)
        fake_apiserver.api.tokens = {"second"}
        (tmp_path / "token").write_text("second\n")
        await client.list(PODS)
    finally:
        await client.close()


async def test_an_exec_plugin_is_run_again_when_its_token_is_refused(
    fake_apiserver: FakeApiServer, tmp_path: Path
) -> None:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({**credential, "status": {"token": "first"}}))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"print(open({str(answer)!r}).read())"],
    }
    fake_apiserver.api.tokens = {"first"}
    path = write_kubeconfig(tmp_path / "config", fake_apiserver.url, {"exec": plugin})
    client = await KubeClient.connect(path)
    try:
        await client.list(PODS)
        fake_apiserver.api.tokens = {"second"}
        answer.write_text(json.dumps({**credential, "status": {"token": "second"}}))
        await client.list(PODS)
        fake_apiserver.api.tokens = {"third"}
        with pytest.raises(Unauthorized):
            await client.list(PODS)
    finally:
        await client.close()


async def test_an_exec_plugin_that_fails_is_an_error_that_says_so(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"exec": plugin})
    with pytest.raises(AccessError, match="exec plugin"):
        await find_access(path)


async def test_the_service_account_token_is_read_again_when_the_kubelet_swaps_it(tmp_path: Path) -> None:
    files = service_account(tmp_path, "first\n")
    access = InClusterAccess(**files, environ=IN_POD)
    assert access.configuration.host == "https://10.0.0.1:443"
    assert access.authorization() == "Bearer first"
    fresh = tmp_path / "fresh"
    fresh.write_text("second")
    fresh.replace(files["token_file"])
    assert access.authorization() == "Bearer second"
    files["token_file"].unlink()
    assert access.authorization() == "Bearer second", "while it is being swapped the last one is used"
    assert await access.renew() is False


async def test_a_pod_without_its_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AccessError):
        InClusterAccess(token_file=tmp_path / "none", ca_file=tmp_path / "none", environ=IN_POD)


async def test_the_given_kubeconfig_comes_before_the_environment(tmp_path: Path) -> None:
    given = write_kubeconfig(tmp_path / "given", "http://given", {})
    named = write_kubeconfig(tmp_path / "named", "http://named", {})
    environ = {"KUBECONFIG": str(named), **IN_POD}
    assert (await find_access(given, environ=environ)).configuration.host == "http://given"
    assert (await find_access(environ=environ)).configuration.host == "http://named"


async def test_several_kubeconfigs_are_merged_and_the_context_is_chosen(tmp_path: Path) -> None:
    one = write_kubeconfig(tmp_path / "one", "http://one", {}, context="one")
    two = write_kubeconfig(tmp_path / "two", "http://two", {}, context="two")
    access = await KubeconfigAccess.load(os.pathsep.join([str(one), str(two)]), context="two")
    assert access.configuration.host == "http://two"
    with pytest.raises(AccessError, match="three"):
        await KubeconfigAccess.load(str(one), context="three")


@pytest.mark.parametrize("content", ["", "[]", "clusters: 7", "{", "kind: Config"])
async def test_a_malformed_kubeconfig_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(AccessError, match=str(path)):
        await find_access(path)


async def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="no such file"):
        await find_access(tmp_path / "none")


def content_and_mode(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), stat.S_IMODE(path.stat().st_mode)


async def test_client_keys_are_kept_readable_by_nobody_else(tmp_path: Path) -> None:
    user = {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}
    path = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user)
    configuration = (await find_access(path)).configuration
    assert content_and_mode(Path(str(configuration.key_file))) == (b"key", 0o600)


async def test_a_static_address_has_nothing_to_renew() -> None:
    access = StaticAccess("http://127.0.0.1:1", token="t")
    assert (access.authorization(), await access.renew()) == ("Bearer t", False)
