"""`python -m noctaya_cluster`, with a cluster that does nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from noctaya_cluster import __main__ as command
from noctaya_cluster.errors import ClusterError
from noctaya_cluster.kubectl import Kubectl
from noctaya_cluster.provider import Cluster


class Still(Cluster):
    """Remembers what was asked of it."""

    name = "still"

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.error: Exception | None = None

    @property
    def kubeconfig(self) -> Path:
        return Path("/state/kubeconfig")

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl("kubectl", self.kubeconfig)

    def start(self) -> None:
        if self.error is not None:
            raise self.error
        self.asked.append("start")

    def load_image(self, *archives: Path) -> None:
        self.asked.append(("load", archives))

    def stop(self) -> None:
        self.asked.append("stop")

    def status(self) -> str:
        return "well"

    def diagnostics(self, folder: Path, *, namespaces: tuple[str, ...] = ()) -> None:
        self.asked.append(("diagnostics", folder, namespaces))


@pytest.fixture
def chosen() -> list[tuple[str | None, bool]]:
    return []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, chosen: list[tuple[str | None, bool]]) -> Still:
    still = Still()

    def choose(name: str | None, *, confirmed: bool, report: Callable[[str], None]) -> Cluster:
        chosen.append((name, confirmed))
        return still

    monkeypatch.setattr(command, "choose_provider", choose)
    monkeypatch.setattr("noctaya_cluster.__main__.signal.signal", lambda *_: None)
    return still


def test_up_prints_what_a_shell_can_evaluate(cluster: Still, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["up"]) == 0

    assert cluster.asked == ["start"]
    assert capsys.readouterr().out == "export KUBECONFIG=/state/kubeconfig\n"


def test_the_provider_and_the_confirmation_are_passed_on(
    cluster: Still, chosen: list[tuple[str | None, bool]]
) -> None:
    command.main(["down", "--cluster", "existing", "--yes-use-this-cluster"])
    command.main(["status"])

    assert chosen == [("existing", True), (None, False)]
    assert cluster.asked == ["stop"]


def test_several_images_are_loaded_at_once(cluster: Still) -> None:
    assert command.main(["load", "a.tar", "b.tar"]) == 0

    assert cluster.asked == [("load", (Path("a.tar"), Path("b.tar")))]


def test_diagnostics_can_be_of_some_namespaces(cluster: Still) -> None:
    command.main(["diagnostics", "out", "--namespace", "a", "--namespace", "b"])

    assert cluster.asked == [("diagnostics", Path("out"), ("a", "b"))]


def test_a_failure_is_one_message_and_exit_1(cluster: Still, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.error = ClusterError("this machine lacks: ipset")

    assert command.main(["up"]) == 1

    assert capsys.readouterr().err == "noctaya-cluster: this machine lacks: ipset\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([], ["get", "pods", "-A", "--watch"]),
        ([], ["-n", "keda", "get", "pods"]),
        (["--cluster", "host"], ["get", "pods", "--cluster", "another"]),
        (["--cluster", "existing", "--yes-use-this-cluster"], ["get", "--help"]),
    ],
)
def test_kubectl_gets_the_rest_of_the_line(
    cluster: Still, monkeypatch: pytest.MonkeyPatch, ours: list[str], theirs: list[str]
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("noctaya_cluster.__main__.os.execvp", lambda program, argv: ran.append(argv))

    assert command.main(["kubectl", *ours, *theirs]) == 0

    assert ran == [["kubectl", "--kubeconfig=/state/kubeconfig", *theirs]]


def test_nodes_are_those_that_take_pods(monkeypatch: pytest.MonkeyPatch, cluster: Still) -> None:
    tainted = [{"key": "x", "effect": "NoSchedule"}]
    items = [
        {"metadata": {"name": "b"}, "spec": {}},
        {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "y", "effect": "PreferNoSchedule"}]}},
        {"metadata": {"name": "cordoned"}, "spec": {"unschedulable": True}},
        {"metadata": {"name": "control"}, "spec": {"taints": tainted}},
    ]
    monkeypatch.setattr(Kubectl, "items", lambda *_: items)

    assert cluster.nodes == ["a", "b"]
