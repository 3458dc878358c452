"""What of the environment the client heeds: proxies, and no credentials of other programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator.kube.resources import CONFIGMAPS
from noctaya_operator.kube.transport import environment_proxy

PROXY = "http://proxy.example.com:3128"


@pytest.fixture(autouse=True)
def no_proxies_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_credentials_of_netrc_do_not_get_in_the_way_of_ours(
    fake_apiserver: FakeApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    client = fake_apiserver.client(token="ours")
    try:
        assert list((await client.list(CONFIGMAPS, "ns")).items) == []
    finally:
        await client.close()


def test_without_variables_there_is_no_proxy() -> None:
    assert environment_proxy("https://10.0.0.1:6443") is None


def test_the_proxy_is_that_of_the_servers_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    assert environment_proxy("https://api.example.com:6443") == PROXY
    assert environment_proxy("http://api.example.com:8080") is None


@pytest.mark.parametrize("exempt", ["api.example.com", ".example.com", "*"])
def test_no_proxy_names_servers_that_are_reached_directly(
    monkeypatch: pytest.MonkeyPatch, exempt: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", exempt)
    assert environment_proxy("https://api.example.com:6443") is None
    assert exempt == "*" or environment_proxy("https://api.other.com:6443") == PROXY
