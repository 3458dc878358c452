"""Which provider is taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_commands import FakeCommands, missing
from noctaya_cluster.choice import choose_provider, detect
from noctaya_cluster.errors import ClusterError
from noctaya_cluster.existing import ExistingCluster
from noctaya_cluster.host.cluster import HostCluster
from noctaya_cluster.kind import KindCluster


def no_rights() -> list[str]:
    return ["root (sudo)"]


@pytest.fixture
def works(commands: FakeCommands) -> FakeCommands:
    """kind and Docker answer."""
    commands.answer("kind version", "kind v0.30.0")
    commands.answer("docker info", "28.0")
    return commands


def test_kind_where_kind_and_docker_answer(works: FakeCommands) -> None:
    assert detect(works, rights=list) == "kind"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("docker info", missing("docker")),
        ("docker info", (1, "Cannot connect to the Docker daemon")),
        ("docker info", ""),  # some versions say nothing and succeed
        ("kind version", missing("kind")),
    ],
)
def test_host_where_kind_cannot_work_and_we_are_root(
    works: FakeCommands, asked: str, answer: str | tuple[int, str] | Exception
) -> None:
    works.answer(asked, answer)

    assert detect(works, rights=list) == "host"


def test_where_nothing_can_work_the_error_says_what_each_lacks(commands: FakeCommands) -> None:
    commands.answer("kind version", missing("kind"))
    commands.answer("docker info", missing("docker"))

    with pytest.raises(ClusterError) as caught:
        detect(commands, rights=no_rights)
    assert "kind lacks kind (https://kind.sigs.k8s.io) and a Docker that answers" in str(caught.value)
    assert "host lacks root (sudo)" in str(caught.value)
    assert "--cluster existing --yes-use-this-cluster" in str(caught.value)


def test_the_one_asked_for_beats_the_environment_which_beats_detection(works: FakeCommands) -> None:
    environment = {"NOCTAYA_E2E_CLUSTER": "existing"}

    assert isinstance(choose_provider("host", run=works, environment=environment), HostCluster)
    assert isinstance(choose_provider(run=works, environment=environment), ExistingCluster)
    assert isinstance(choose_provider(run=works, environment={}), KindCluster)


def test_a_provider_that_does_not_exist_is_named(works: FakeCommands) -> None:
    with pytest.raises(ClusterError, match="no provider 'minikube'; there are kind, host, existing"):
        choose_provider(run=works, environment={"NOCTAYA_E2E_CLUSTER": "minikube"})


def test_another_state_folder_is_another_cluster(works: FakeCommands, tmp_path: Path) -> None:
    environment = {"NOCTAYA_CLUSTER_STATE": str(tmp_path / "mine")}

    cluster = choose_provider("host", run=works, environment=environment)

    assert cluster.kubeconfig == tmp_path / "mine" / "kubeconfig"
