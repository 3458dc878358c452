"""What is collected about a cluster that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_commands import FakeCommands
from noctaya_cluster.diagnostics import collect, containers
from noctaya_cluster.errors import ClusterError
from noctaya_cluster.kubectl import Kubectl

POD = {
    "metadata": {"name": "chat-0"},
    "status": {
        "initContainerStatuses": [{"name": "wait", "restartCount": 0, "state": {"terminated": {}}}],
        "containerStatuses": [
            {"name": "engine", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            {"name": "side", "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}},
        ],
    },
}


@pytest.fixture
def kubectl(commands: FakeCommands, tmp_path: Path) -> Kubectl:
    commands.answer("get", "some objects")
    commands.answer("describe", "some words")
    commands.answer("logs", "log lines")
    commands.answer("get pods", json.dumps({"items": [POD]}))
    names = [{"metadata": {"name": name}} for name in ("keda", "team", "other")]
    commands.answer("get namespaces -o json", json.dumps({"items": names}))
    return Kubectl("kubectl", tmp_path / "kubeconfig", run=commands)


def test_logs_of_every_container_that_ran_and_of_the_run_before(kubectl: Kubectl, tmp_path: Path) -> None:
    collect(kubectl, tmp_path / "report")

    logs = {file.name for file in (tmp_path / "report" / "team" / "logs").iterdir()}
    assert logs == {"chat-0.wait.log", "chat-0.engine.log", "chat-0.engine.previous.log"}


def test_a_container_that_never_started_has_no_log() -> None:
    assert containers(POD) == [("wait", False), ("engine", True)]
    assert containers({"metadata": {"name": "new"}}) == []


def test_all_namespaces_by_default_and_the_systems_always(kubectl: Kubectl, tmp_path: Path) -> None:
    collect(kubectl, tmp_path / "all")
    collect(kubectl, tmp_path / "one", namespaces=["team"])

    everything = {each.name for each in (tmp_path / "all").iterdir() if each.is_dir()}
    assert {"keda", "team", "other", "cluster"} <= everything
    some = {each.name for each in (tmp_path / "one").iterdir() if each.is_dir()}
    assert some == {"keda", "kube-system", "noctaya-system", "team", "cluster"}


def test_secrets_stay_out(kubectl: Kubectl, commands: FakeCommands, tmp_path: Path) -> None:
    collect(kubectl, tmp_path / "report")

    kinds = {word for argv in commands.asked for word in argv if not word.startswith("--kubeconfig")}
    assert not [kind for kind in kinds if "secret" in kind or kind == "all"]


def test_what_cannot_be_had_is_named_and_stops_nothing(
    kubectl: Kubectl, commands: FakeCommands, tmp_path: Path
) -> None:
    commands.answer("get scaledobjects", (1, "the server doesn't have a resource type"))
    commands.answer("describe nodes", ClusterError("kubectl describe nodes: no answer within 30 s"))

    collect(kubectl, tmp_path / "report")

    failures = (tmp_path / "report" / "failures.txt").read_text()
    assert "the server doesn't have a resource type" in failures
    assert "no answer within 30 s" in failures
    assert (tmp_path / "report" / "team" / "events.txt").read_text() == "some objects"


def test_without_an_api_server_there_is_still_a_report(commands: FakeCommands, tmp_path: Path) -> None:
    commands.answer("kubectl", (1, "connection refused"))

    collect(Kubectl("kubectl", None, run=commands), tmp_path / "report")

    assert "connection refused" in (tmp_path / "report" / "failures.txt").read_text()
