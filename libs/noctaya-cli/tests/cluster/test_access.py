"""The API server through the user's kubeconfig."""

from pathlib import Path

import pytest
import yaml
from noctaya_cli.cluster.access import Cluster, ClusterError, NotAllowed, NotThere, connect

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
    with pytest.raises(ClusterError, match="credential of the kubeconfig is not accepted"):
        connect(file, None).get("/version")


def test_an_answer_that_is_no_json_is_a_cluster_error(api: FakeApi, cluster: Cluster) -> None:
    api.texts["/version"] = "<html>a proxy's login page</html>"
    with pytest.raises(ClusterError, match="not JSON"):
        cluster.get("/version")
