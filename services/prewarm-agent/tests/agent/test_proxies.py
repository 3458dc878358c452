import pytest
from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.proxies import proxy_for


@pytest.mark.parametrize(
    ("host", "exempt"),
    [
        ("hub.example", False),
        ("mirror.internal", True),
        ("a.mirror.internal", True),
        ("notmirror.internal", False),
        ("x.cluster.local", True),
        ("10.1.2.3", True),
        ("11.1.2.3", False),
        ("192.168.7.7", True),
        ("fd00::1", True),
        ("ported.example", True),
    ],
)
def test_m3_no_proxy_takes_names_networks_and_ports(
    monkeypatch: pytest.MonkeyPatch, host: str, exempt: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    entries = "mirror.internal, .cluster.local,10.0.0.0/8,192.168.7.7,fd00::/8,ported.example:443,other:80"
    monkeypatch.setenv("NO_PROXY", entries)
    assert (proxy_for("https", host, 443) is None) is exempt


def test_m3_a_port_in_no_proxy_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "hub.example:8443")
    assert proxy_for("https", "hub.example", 443) is not None
    assert proxy_for("https", "hub.example", 8443) is None


def test_m3_a_star_exempts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "proxy.example:3128")
    assert proxy_for("http", "hub.example", 80) is not None
    monkeypatch.setenv("NO_PROXY", "*")
    assert proxy_for("http", "hub.example", 80) is None


def test_m3_credentials_of_a_proxy_are_decoded_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://us%40er:pa%3Ass@proxy.example")
    found = proxy_for("http", "hub.example", 80)
    assert found is not None
    assert (found.host, found.port) == ("proxy.example", 80)
    assert found.authorization == "Basic dXNAZXI6cGE6c3M="


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://proxy.example:3129", "of the kind https://; name its http:// port"),
        ("socks5://proxy.example:1080", "of the kind socks5://"),
        ("http://proxy.example:none", "no valid port"),
        ("http://", "no host"),
    ],
)
def test_m3_another_kind_of_proxy_is_refused_by_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, url: str, why: str
) -> None:
    monkeypatch.setenv(variable, url)
    with pytest.raises(BadSettings, match=f"{variable} .*{why}"):
        proxy_for("https", "hub.example", 443)
