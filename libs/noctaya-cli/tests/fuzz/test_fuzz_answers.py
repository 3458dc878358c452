"""Kubeconfigs, answers of API servers and manifests: what can't be used is one error in a few lines."""

from __future__ import annotations

import base64
import copy
import http.server
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from noctaya_cli.cluster import access
from noctaya_cli.cluster.access import Cluster, ClusterError, connect
from noctaya_cli.main import app
from typer.testing import CliRunner

from .hostile import JSON, SCALARS, TEXT, raw

BASE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "test",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "t0ken"}}],
    "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": "models"}}],
}
PLACES = (
    ("current-context",), ("clusters",), ("clusters", 0), ("clusters", 0, "name"), ("clusters", 0, "cluster"),
    ("clusters", 0, "cluster", "server"), ("clusters", 0, "cluster", "certificate-authority-data"),
    ("clusters", 0, "cluster", "insecure-skip-tls-verify"), ("clusters", 0, "cluster", "tls-server-name"),
    ("users",), ("users", 0, "user"), ("users", 0, "user", "token"), ("users", 0, "user", "username"),
    ("users", 0, "user", "client-key-data"), ("contexts",), ("contexts", 0), ("contexts", 0, "name"),
    ("contexts", 0, "context"), ("contexts", 0, "context", "namespace"), ("contexts", 0, "context", "user"),
)  # fmt: skip
SERVERS = st.sampled_from(
    [
        "",
        "http://",
        "http://[",
        "://x",
        "ftp://127.0.0.1:1",
        "http://127.0.0.1:99999",
        "https://127.0.0.1:1/\x1b[31m",
    ]
)


def changed(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    config = copy.deepcopy(BASE)
    target: Any = config
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return config


@pytest.mark.parametrize("token", ["s3cret\u2026", "s3cret\nx"])
def test_fuzz_a_token_that_can_not_be_sent_is_not_told(file: Path, token: str) -> None:
    file.write_text(json.dumps(changed(("users", 0, "user", "token"), token)))
    with pytest.raises(ClusterError, match="credential of the kubeconfig holds a character") as caught:
        connect(file, None).get("/version")
    assert "s3cret" not in str(caught.value)


def used(file: Path) -> None:
    """Take a kubeconfig, and ask its server for something; nothing listens there."""
    try:
        connect(file, None).get("/version")
    except ClusterError as error:
        assert len(str(error)) < 2000
        assert str(error).strip()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kubeconfig") / "config"


@given(place=st.sampled_from(PLACES), value=SERVERS | SCALARS | st.just(base64.b64encode(b"no PEM").decode()))
@example(place=("contexts", 0, "context", "namespace"), value=5)
@example(place=("contexts", 0, "context"), value="text")
@example(place=("users", 0, "user", "token"), value="t0ken\u2026")
@example(place=("clusters", 0, "cluster", "server"), value="http://127.0.0.1:1/\ud800")
def test_fuzz_a_kubeconfig_is_used_or_refused(file: Path, place: tuple[Any, ...], value: Any) -> None:
    file.write_text(json.dumps(changed(place, value)))
    used(file)


@given(content=st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode()))
@example(content=b"a: &a [*a]")
@example(content=b"[" * 5000)
@example(content=b"\xff\xfe")
def test_fuzz_bytes_are_no_kubeconfig(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    used(file)


class Server:
    """An API server on loopback that answers as it is told."""

    def __init__(self) -> None:
        self.status, self.content, self.date = 200, b"{}", "Mon, 30 Nov 2026 10:00:00 GMT"
        self.endless: bytes = b""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(outer.status)
                if not outer.endless:
                    self.send_header("Content-Length", str(len(outer.content)))
                self.end_headers()
                try:
                    self.wfile.write(outer.content)
                    while outer.endless:
                        self.wfile.write(outer.endless)
                except OSError:
                    """Whoever asked has had enough."""

            def date_time_string(self, timestamp: float | None = None) -> str:
                return outer.date

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.endless = b""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    kubeconfig = tmp_path_factory.mktemp("answers") / "config"
    kubeconfig.write_text(json.dumps(changed(("clusters", 0, "cluster", "server"), server.url)))
    return connect(kubeconfig, None)


DATES = st.sampled_from(
    [
        "",
        "Mon, 30 Nov 2026 10:00:00 -0000",
        "Mon, 30 Nov 9999 23:59:59 GMT",
        "Mon, 30 Nov 0001 00:00:00 +2359",
    ]
) | st.text("0123456789 :,+-MonNvGT", max_size=30)


@given(
    status=st.sampled_from([200, 200, 401, 403, 404, 409, 422, 500, 503]),
    content=st.binary(max_size=60)
    | JSON.map(lambda value: json.dumps(value).encode())
    | SCALARS.map(lambda value: json.dumps({"message": value, "items": value}).encode()),
    date=DATES,
)
@example(status=200, content=b"[" * 100_000, date="")
@example(status=500, content=b'{"message":' + b"[" * 100_000, date="")
@example(status=403, content=json.dumps({"message": "no\n" * 100_000}).encode(), date="")
@example(status=200, content=b'{"items": [], "a": ' + b"1" * 5000 + b"}", date="")
def test_fuzz_an_answer_is_an_object_or_one_error(
    server: Server, cluster: Cluster, status: int, content: bytes, date: str
) -> None:
    server.status, server.content, server.date = status, content, date
    for ask in (cluster.get, cluster.items, cluster.text):
        try:
            ask("/api/v1/pods")
        except ClusterError as error:
            assert len(str(error)) < 2000
    assert abs(cluster.now().year - 2026) < 10_000


@pytest.mark.parametrize("status", [200, 500])
def test_fuzz_an_answer_without_an_end_is_refused(server: Server, cluster: Cluster, status: int) -> None:
    server.status, server.content, server.endless = status, b"", b"x" * 65_536
    with pytest.raises(ClusterError, match="larger than 4 MiB"):
        cluster.text("/metrics")
    server.endless = b""


def test_fuzz_an_answer_that_drips_is_refused(
    server: Server, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "LONGEST", timedelta(milliseconds=50).total_seconds())
    monkeypatch.setattr(access, "LARGEST_TEXT", 1 << 40)
    server.status, server.content, server.endless = 200, b"", b"x"
    with pytest.raises(ClusterError, match="took longer than"):
        cluster.text("/metrics")
    server.endless = b""


OBJECTS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("serving.noctaya.io/v1alpha1") | TEXT,
        "kind": st.sampled_from(["LLMService", "InferenceRuntime", "List"]) | TEXT,
        "metadata": st.fixed_dictionaries({"name": st.just("chat") | TEXT}) | JSON,
        "spec": st.fixed_dictionaries(
            {
                "vendor": st.just("cpu") | TEXT,
                "container": st.fixed_dictionaries(
                    {
                        "image": TEXT,
                        "port": st.just({}),
                        "args": st.lists(TEXT | st.just("{{ .Model.Path }}"), max_size=2),
                        "env": st.lists(st.fixed_dictionaries({"name": TEXT, "value": TEXT}), max_size=2),
                    }
                ),
                "model": st.fixed_dictionaries({"source": st.fixed_dictionaries({"uri": TEXT})}),
                "runtime": st.fixed_dictionaries({"name": st.just("chat") | TEXT}),
            }
        )
        | JSON,
    }
)


CLEARS = {"apiVersion": "v1", "kind": "LLMService", "metadata": {"name": "\x1b[2J"}}


@given(
    command=st.sampled_from(["run", "validate"]),
    content=st.binary(max_size=80)
    | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.lists(OBJECTS, max_size=2).map(lambda found: "\n---\n".join(map(json.dumps, found)).encode()),
)
@example(command="validate", content=b"a: &a [*a]")
@example(command="validate", content=b"{" * 1200)
@example(command="run", content=b"- " * 1200)
@example(command="run", content=b"a: !!python/object/apply:os.system ['true']")
@example(command="run", content=yaml.safe_dump(CLEARS).encode())
def test_fuzz_a_manifest_is_taken_or_refused_in_plain_words(file: Path, command: str, content: bytes) -> None:
    manifest = file.with_name("manifest.yaml")
    manifest.write_bytes(content)
    # Nothing of these can be run: no volume is given, so no service comes as far as a process.
    done = CliRunner().invoke(app, [command, str(manifest)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in ({1} if command == "run" else {0, 1})
    assert raw(done.output) == set()
    assert len(done.output) < 20_000
