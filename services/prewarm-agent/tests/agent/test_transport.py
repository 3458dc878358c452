"""M3: it gets in - through proxies, past private authorities - and over every kind of connection."""

import base64
import http.server
import select
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from noctaya_model_hub import Effect, Hub, Match, Served
from noctaya_prewarm.errors import BadSettings, NetworkFault
from noctaya_prewarm.trust import bundle_path, tls_context

from .kit import REPOSITORY, assert_whole, fetch, hub_beside


class Proxy(http.server.BaseHTTPRequestHandler):
    """Forwards by absolute URL, and tunnels."""

    seen: list[tuple[str, str]]
    password = ""

    def do_GET(self) -> None:
        self.seen.append(("GET", self.path.split("?")[0]))
        if not self._may_pass():
            return
        rest = self.path.removeprefix("http://")
        where, _, path = rest.partition("/")
        host, _, port = where.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as upstream:
            kept = "".join(
                f"{name}: {value}\r\n"
                for name, value in self.headers.items()
                if name.lower() not in {"proxy-authorization", "connection"}
            )
            upstream.sendall(f"GET /{path} HTTP/1.1\r\n{kept}Connection: close\r\n\r\n".encode())
            while block := upstream.recv(65536):
                self.wfile.write(block)
        self.close_connection = True

    do_HEAD = do_GET  # noqa: N815  the base class's name

    def do_CONNECT(self) -> None:
        self.seen.append(("CONNECT", self.path))
        if not self._may_pass():
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as upstream:
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            pair = {self.connection: upstream, upstream: self.connection}
            while ready := select.select(list(pair), [], [], 30)[0]:
                for one in ready:
                    block = one.recv(65536)
                    if not block:
                        self.close_connection = True
                        return
                    pair[one].sendall(block)

    def _may_pass(self) -> bool:
        wanted = "Basic " + base64.b64encode(self.password.encode()).decode()
        if self.password and self.headers.get("Proxy-Authorization") != wanted:
            self.send_response(407)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        return True

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class ProxyServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Clients leave when they have what they want."""


@contextmanager
def proxy(*, password: str = "") -> Iterator[tuple[str, list[tuple[str, str]]]]:
    seen: list[tuple[str, str]] = []
    handler = type("Handler", (Proxy,), {"seen": seen, "password": password})
    with ProxyServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
def secure(hub: Hub, authority: trustme.CA) -> Iterator[Served]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    with hub_beside(hub, tls=context) as served:
        yield served


@pytest.mark.parametrize("scheme", ["hf", "modelscope", "s3"])
def test_m3_a_private_authority_is_trusted_when_it_is_given(
    secure: Served, hub: Hub, target: Path, ca_file: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "")  # put back after ModelScope's client was told
    source = f"{scheme}://{REPOSITORY}"
    endpoint = secure.url
    if scheme == "s3":
        hub.bucket("weights", {"m/config.json": "{}"})
        source, endpoint = "s3://weights/m", secure.s3_url
    fetch(secure, target, source=source, ca_file=ca_file, endpoint=endpoint)
    assert (target / "config.json").exists()


@pytest.mark.parametrize("scheme", ["hf", "s3"])
def test_m3_an_authority_nobody_knows_is_refused_with_the_remedy(
    secure: Served, target: Path, scheme: str
) -> None:
    source = f"hf://{REPOSITORY}" if scheme == "hf" else "s3://weights/m"
    with pytest.raises(NetworkFault, match="NOCTAYA_PREWARM_CA_FILE"):
        fetch(secure, target, source=source, endpoint=secure.url if scheme == "hf" else secure.s3_url)


def test_m3_ssl_cert_file_counts_too(
    secure: Served, hub: Hub, target: Path, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    fetch(secure, target)
    assert_whole(target, hub)


def test_m3_a_missing_authority_file_adds_nothing_and_nonsense_is_named(tmp_path: Path) -> None:
    assert tls_context(tmp_path / "absent").verify_mode is ssl.CERT_REQUIRED
    assert bundle_path(tmp_path / "absent") is None
    nonsense = tmp_path / "ca.crt"
    nonsense.write_text("no certificate")
    with pytest.raises(BadSettings, match="NOCTAYA_PREWARM_CA_FILE"):
        tls_context(nonsense)


def test_a_bundle_holds_the_systems_authorities_and_ours(ca_file: Path) -> None:
    path = bundle_path(ca_file)
    assert path is not None
    content = Path(path).read_bytes()
    assert ca_file.read_bytes() in content
    assert content.count(b"BEGIN CERTIFICATE") > 1


def test_m3_a_proxy_with_a_password_forwards_everything(
    served: Served, hub: Hub, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(password="user:pass") as (address, seen):
        monkeypatch.setenv("HTTP_PROXY", f"http://user:pass@{address}")
        fetch(served, target)
        assert_whole(target, hub)
    assert len(seen) >= len(hub.requests.seen)
    assert {method for method, _ in seen} == {"GET"}


def test_m3_https_goes_through_a_tunnel(
    secure: Served, hub: Hub, target: Path, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(password="user:pass") as (address, seen):
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass@{address}")
        fetch(secure, target, ca_file=ca_file)
        assert_whole(target, hub)
    assert {method for method, _ in seen} == {"CONNECT"}


def test_m3_a_proxy_that_wants_another_password_ends_at_once(
    secure: Served, hub: Hub, target: Path, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.bucket("weights", {"m/a": "a"})
    with proxy(password="user:other") as (address, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass@{address}")
        with pytest.raises(BadSettings, match="proxy") as caught:
            fetch(secure, target, source="s3://weights/m", endpoint=secure.s3_url, ca_file=ca_file)
    assert "pass@" not in str(caught.value)


def test_m3_no_proxy_is_honoured(
    served: Served, hub: Hub, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.0/8")
    hub.bucket("weights", {"m/a": "a"})
    fetch(served, target, source="s3://weights/m", endpoint=served.s3_url)
    assert (target / "a").read_text() == "a"


def test_a_redirect_from_https_to_http_is_refused(
    secure: Served, hub: Hub, target: Path, ca_file: Path
) -> None:
    hub.faults.add(Match(route="cdn"), Effect(redirect="http://127.0.0.1:9/plain"))
    with pytest.raises(NetworkFault, match="from https to http"):
        fetch(secure, target, ca_file=ca_file)


def test_redirects_in_a_circle_end(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(
        Match(route="resolve"), Effect(redirect=f"{served.url}/{REPOSITORY}/resolve/main/config.json")
    )
    with pytest.raises(NetworkFault, match="redirects more than"):
        fetch(served, target)


def test_a_server_that_closes_idle_connections_is_asked_again(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(Match(route="cdn", calls={1}), Effect(headers=(("Connection", "close"),)))
    fetch(served, target, connections=1)
    assert_whole(target, hub)
