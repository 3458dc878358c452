"""The API server through the user's kubeconfig."""

import contextlib
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
import yaml
from noctaya_cli.cluster.access import Cluster, ClusterError, NotAllowed, NotThere, connect
from noctaya_cli.cluster.credential import remark
from noctaya_cli.cluster.unreachable import why
from noctaya_cli.main import app
from typer.testing import CliRunner

from .fake_api import FakeApi


def test_a_list_is_read_to_its_last_page(api: FakeApi, cluster: Cluster) -> None:
    api.page = 2
    api.collections["/api/v1/pods"] = [{"metadata": {"name": str(number)}} for number in range(5)]
    assert [each["metadata"]["name"] for each in cluster.items("/api/v1/pods")] == list("01234")


def test_refusals_are_types(api: FakeApi, cluster: Cluster) -> None:
    api.forbidden.add("/secrets")
    with pytest.raises(NotAllowed, match="may not GET /api/v1/secrets"):
        cluster.items("/api/v1/secrets")
    with pytest.raises(NotThere):
        cluster.get("/api/v1/nothing")


def test_the_namespace_is_that_of_the_context(api: FakeApi, tmp_path: Path) -> None:
    assert connect(api.kubeconfig(tmp_path, namespace="team-a"), None).namespace == "team-a"


def test_an_unknown_context_names_those_that_exist(api: FakeApi, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="there is no context 'prod' in the kubeconfig; there is test"):
        connect(api.kubeconfig(tmp_path), "prod")


@pytest.mark.parametrize("content", ["", "{", "kind: Config\n", "[1]"])
def test_a_kubeconfig_that_is_none_is_a_cluster_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    with pytest.raises(ClusterError, match="kubeconfig can't be used"):
        connect(file, None)


def test_a_server_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with FakeApi() as server:
        file = server.kubeconfig(tmp_path)
    with pytest.raises(ClusterError) as caught:
        connect(file, None).get("/version")
    assert str(caught.value).startswith("test: ")
    assert "\n" not in str(caught.value)


def test_a_credential_that_is_refused_is_told(api: FakeApi, tmp_path: Path) -> None:
    file = api.kubeconfig(tmp_path)
    config = yaml.safe_load(file.read_text())
    config["users"][0]["user"]["token"] = "old"
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(ClusterError, match="is not accepted; it may have expired"):
        connect(file, None).get("/version")


@pytest.mark.parametrize("named", [True, False])
def test_a_kubeconfig_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    file = tmp_path / "nowhere"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "unused" if named else file))
    with pytest.raises(ClusterError, match=rf"there is no kubeconfig at {file}: name one with --kubeconfig"):
        connect(file if named else None, None)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (timedelta(days=3), "its client certificate expired 3 days ago: get a new kubeconfig"),
        (timedelta(minutes=1), "its client certificate expired at 20"),
        (timedelta(days=-1), "it may have expired: log in again, or name another --context"),
    ],
)
def test_a_client_certificate_that_is_over_is_why_a_credential_is_refused(
    tmp_path: Path, ended: timedelta, said: str
) -> None:
    now = datetime.now(UTC)
    file = tmp_path / "client.pem"
    file.write_bytes(trustme.CA().issue_cert("ann", not_after=now - ended).cert_chain_pems[0].bytes())
    assert remark(str(file), now=now).startswith(said)


@pytest.mark.parametrize("content", [b"", b"no certificate"])
def test_a_client_certificate_that_can_not_be_read_is_no_matter_here(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "client.pem"
    file.write_bytes(content)
    assert remark(str(file), now=datetime.now(UTC)).startswith("it may have expired")
    assert remark(None, now=datetime.now(UTC)).startswith("it may have expired")


def test_an_answer_that_is_no_json_is_a_cluster_error(api: FakeApi, cluster: Cluster) -> None:
    api.texts["/version"] = "<html>a proxy's login page</html>"
    with pytest.raises(ClusterError, match="not JSON"):
        cluster.get("/version")


def unreached(tmp_path: Path, server: str, **cluster: str) -> str:
    with FakeApi() as api:
        file = api.kubeconfig(tmp_path)
    config = yaml.safe_load(file.read_text())
    config["clusters"][0]["cluster"] = {"server": server, **cluster}
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(ClusterError) as caught:
        connect(file, None).get("/version")
    return str(caught.value)


def test_a_port_nobody_listens_on_is_told_as_that(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert unreached(tmp_path, server) == (
            f"test: nothing listens at {server}: is the cluster up, and is this the context you mean?"
        )


def test_a_name_that_does_not_exist_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    said = unreached(tmp_path, "https://cluster.invalid:6443")
    assert said.startswith("test: the name in https://cluster.invalid:6443 can't be resolved")


def test_a_certificate_of_somebody_else_is_told_as_that(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(other.cert_pem.bytes())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse_one, args=(listener, context))
        thread.start()
        server = f"https://127.0.0.1:{listener.getsockname()[1]}"
        said = unreached(tmp_path, server, **{"certificate-authority": str(trusted)})
        thread.join()
    assert said.startswith(f"test: the certificate of {server} is not trusted (")
    assert "certificate authority is another one" in said


def refuse_one(listener: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    with connection, contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True):
        pass


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError("timed out"), "https://c did not answer within 10 s: the network"),
        (ssl.SSLError(1, "tlsv1 alert"), "no TLS with https://c: "),
        (OSError(5, "Input/output\nerror"), "https://c: [Errno 5] Input/output error"),
    ],
)
def test_every_other_error_is_one_line(error: OSError, said: str) -> None:
    told = why(error, server="https://c", seconds=10.0)
    assert told.startswith(said)
    assert "\n" not in told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'pods is forbidden: User "ann" cannot list resource "pods" in API group "" '
            'in the namespace "team"',
            'ann may not list pods in the namespace "team"',
        ),
        (
            'deployments.apps is forbidden: User "ann" cannot list resource "deployments" in API group '
            '"apps" at the cluster scope',
            "ann may not list deployments.apps at the cluster scope",
        ),
        ("admission webhook says no", "admission webhook says no"),
    ],
)
def test_a_missing_right_is_told_in_few_words(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    monkeypatch.setattr(FakeApi, "answer", lambda *_: (403, {"kind": "Status", "message": said}))
    with pytest.raises(NotAllowed) as caught:
        cluster.get("/version")
    assert str(caught.value) == told


def test_a_role_that_would_do_is_named(api: FakeApi, tmp_path: Path) -> None:
    api.forbidden.add("/llmservices")
    file = str(api.kubeconfig(tmp_path))
    for command in (["status"], ["explain", "chat"]):
        result = CliRunner().invoke(app, [*command, "--kubeconfig", file])
        assert result.exit_code == 1
        assert result.stderr.endswith("; the role noctaya-observer may (examples/security/roles)\n")
