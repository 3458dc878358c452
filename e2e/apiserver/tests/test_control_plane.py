"""The control plane itself: it starts beside others, restarts, and never outlives whoever started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from noctaya_apiserver import ApiClient, ChildFailed, ControlPlane, Refused, User, control_plane, wait_for
from noctaya_apiserver.client import Object
from noctaya_apiserver.ports import free_ports


@pytest.fixture(scope="module")
def api_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A bare API, without controllers."""
    folder = tmp_path_factory.mktemp("api")
    with ControlPlane(folder, controllers=(), users=[User("nobody")]) as plane:
        yield plane


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_it_says_its_version_and_users_have_the_rights_they_were_given(api_only: ControlPlane) -> None:
    assert api_only.client().get("/version")["gitVersion"] == "v1.34.4"
    with pytest.raises(Refused, match="cannot list"):
        api_only.client("nobody").get("/api/v1/secrets")
    assert api_only.kubeconfig().stat().st_mode & 0o077 == 0


def test_the_api_server_alone_restarts_with_its_data_at_its_address(api_only: ControlPlane) -> None:
    api, address, pids = api_only.client(), api_only.server, api_only.pids
    api.create(config_map("kept"))
    api_only.stop_apiserver()
    assert not alive(pids["kube-apiserver"])
    assert alive(pids["etcd"])
    api_only.start_apiserver()
    assert api_only.server == address
    assert api_only.client().find("/api/v1/namespaces/default/configmaps/kept") is not None


def test_a_port_that_is_taken_is_answered_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = free_ports
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answers = [[taken.getsockname()[1], *real(1)], None, [taken.getsockname()[1]], None]

        def lie(count: int) -> list[int]:
            return answers.pop(0) or real(count)

        monkeypatch.setattr(control_plane, "free_ports", lie)
        with ControlPlane(tmp_path, controllers=()) as plane:
            assert plane.client().get("/readyz") == "ok"
    assert not answers


def test_a_process_that_ends_by_itself_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_plane, "POLICY", "no policy")
    with pytest.raises(ChildFailed, match=r"(?s)kube-apiserver ended with 1: .*loading audit policy file"):
        ControlPlane(tmp_path, controllers=()).start()
    assert "audit" in (tmp_path / "kube-apiserver.log").read_text()


def test_stopping_ends_every_process_and_leaves_the_logs(tmp_path: Path) -> None:
    with ControlPlane(tmp_path, controllers=()) as plane:
        pids = plane.pids
    assert not any(map(alive, pids.values()))
    assert (tmp_path / "kube-apiserver.log").stat().st_size > 0


def test_killing_whoever_started_it_ends_every_process(tmp_path: Path) -> None:
    up = start_up(tmp_path)
    try:
        pids = children_of(up.pid)
        assert len(pids) == 3
        up.send_signal(signal.SIGKILL)
    finally:
        up.kill()
        up.communicate()
    wait_for(lambda: not any(map(alive, pids)), within=10.0, what="etcd and the API server gone")


def test_up_prints_a_kubeconfig_that_works_and_ends_on_sigterm(tmp_path: Path) -> None:
    up = start_up(tmp_path)
    try:
        kubeconfig = tmp_path / "kept" / "admin.kubeconfig"
        assert up.first_line == f"export KUBECONFIG={kubeconfig}\n"
        reach = ApiClient.of_kubeconfig(kubeconfig)
        assert reach.get("/apis/serving.noctaya.io/v1alpha1/llmservices")["items"] == []
        assert reach.get("/apis/keda.sh/v1alpha1/scaledobjects")["items"] == []
        reach.close()
        up.terminate()
        assert up.wait(30) == 0
    finally:
        up.kill()
        up.communicate()


class Up(subprocess.Popen[str]):
    """`noctaya-apiserver up`."""

    first_line = ""


def start_up(folder: Path) -> Up:
    argv = [sys.executable, "-m", "noctaya_apiserver", "up", f"--keep={folder / 'kept'}"]
    up = Up(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert up.stdout is not None
    up.first_line = up.stdout.readline()
    return up


def children_of(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
