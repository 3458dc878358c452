"""Provider `existing`: what it asks for and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_commands import FakeCommands
from noctaya_cluster import keda
from noctaya_cluster.errors import ClusterError, Unsupported
from noctaya_cluster.existing import ExistingCluster

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
AVAILABLE = {"conditions": [{"type": "Available", "status": "True"}]}
KUBECONFIG = "apiVersion: v1\nclusters: [{cluster: {server: https://example.com}}]\n"


def nodes(count: int, *, labelled: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "metadata": {
                "name": f"node-{number}",
                "labels": {"kubernetes.io/hostname": f"node-{number}"} if labelled else {},
            },
            "spec": {},
            "status": READY,
        }
        for number in range(count)
    ]


def keda_deployments(label: str = "keda-operator") -> list[dict[str, Any]]:
    template = {"metadata": {"labels": {"app": label}}}
    return [
        {"metadata": {"name": name}, "spec": {"template": template}, "status": AVAILABLE}
        for name in keda.DEPLOYMENTS
    ]


def storage(default: str) -> list[dict[str, Any]]:
    return [
        {"metadata": {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": default}}}
    ]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cluster(tmp_path: Path, commands: FakeCommands, said: list[str]) -> ExistingCluster:
    """A cluster that has everything."""
    commands.answer("config view", KUBECONFIG)
    commands.answer("get --raw /readyz", "ok")
    commands.answer("get nodes", json.dumps({"items": nodes(2)}))
    commands.answer("get deployments", json.dumps({"items": keda_deployments()}))
    commands.answer("get storageclasses", json.dumps({"items": storage("true")}))
    return ExistingCluster(
        tmp_path / "existing", confirmed=True, run=commands, report=said.append, environment={}
    )


def test_without_the_flag_nothing_is_asked(tmp_path: Path, commands: FakeCommands) -> None:
    cluster = ExistingCluster(tmp_path, confirmed=False, run=commands, environment={})

    with pytest.raises(ClusterError, match="--yes-use-this-cluster"):
        cluster.start()
    assert commands.asked == []


def test_a_cluster_that_has_everything_is_taken_and_only_read(
    cluster: ExistingCluster, commands: FakeCommands
) -> None:
    cluster.start()

    verbs = {next(word for word in argv[1:] if not word.startswith("-")) for argv in commands.asked}
    assert verbs == {"config", "get"}


def test_a_change_of_context_during_a_test_changes_nothing(
    cluster: ExistingCluster, commands: FakeCommands
) -> None:
    cluster.start()

    (view,) = commands.lines("config view")
    assert {"--minify", "--flatten", "--raw"} <= set(view.split())
    assert cluster.kubeconfig.read_text() == KUBECONFIG
    assert cluster.kubeconfig.stat().st_mode & 0o077 == 0
    assert all(f"--kubeconfig={cluster.kubeconfig}" in line for line in commands.lines(" get "))


@pytest.mark.parametrize(
    ("asked", "answer", "lacks"),
    [
        ("get --raw /readyz", (1, "refused"), r"an API server that answers \(refused\)"),
        ("get nodes", json.dumps({"items": nodes(1)}), r"two ready nodes \(it has 1\)"),
        (
            "get nodes",
            json.dumps({"items": nodes(2, labelled=False)}),
            "kubernetes.io/hostname on node-0, node-1",
        ),
        ("get deployments", json.dumps({"items": []}), "KEDA in namespace keda"),
        ("get --raw /apis/external.metrics", (1, "not found"), "external metrics API"),
        ("get storageclasses", json.dumps({"items": storage("false")}), "a default StorageClass"),
    ],
)
def test_what_is_missing_is_named(
    cluster: ExistingCluster, commands: FakeCommands, asked: str, answer: str | tuple[int, str], lacks: str
) -> None:
    commands.answer(asked, answer)

    with pytest.raises(ClusterError, match=f"this cluster lacks: .*{lacks}"):
        cluster.start()


def test_another_label_on_keda_is_worth_a_word(
    cluster: ExistingCluster, commands: FakeCommands, said: list[str]
) -> None:
    commands.answer("get deployments", json.dumps({"items": keda_deployments("operator")}))

    cluster.start()

    assert any("app=keda-operator" in line for line in said)


def test_a_kubeconfig_without_a_context_is_named(tmp_path: Path, commands: FakeCommands) -> None:
    commands.answer("config view", "apiVersion: v1\nclusters: null\n")
    environment = {"KUBECONFIG": "/home/me/config"}
    cluster = ExistingCluster(tmp_path, confirmed=True, run=commands, environment=environment)

    with pytest.raises(ClusterError, match="/home/me/config can't be used: it names no current context"):
        cluster.start()


def test_images_come_from_a_registry(cluster: ExistingCluster) -> None:
    with pytest.raises(Unsupported, match=r"push gateway\.tar there"):
        cluster.load_image(Path("/tmp/gateway.tar"))


def test_stop_forgets_the_kubeconfig_and_leaves_the_cluster(
    cluster: ExistingCluster, commands: FakeCommands
) -> None:
    cluster.start()
    asked = len(commands.asked)

    cluster.stop()
    cluster.stop()

    assert len(commands.asked) == asked
    assert not cluster.kubeconfig.exists()
