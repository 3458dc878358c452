"""Releases over their life on a real API server: install, upgrade with changed CRDs, roll back, uninstall."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from noctaya_apiserver import ApiClient
from noctaya_apiserver.client import Object, wait_for
from noctaya_apiserver.world import World, runtime
from noctaya_charts.former import NEW_FIELDS, alpha_chart, former_chart
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm, HelmFault

CHART = CHARTS / "operator"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OURS = ("llmservices.serving.noctaya.io", "inferenceruntimes.serving.noctaya.io")
SYSTEM = "noctaya-system"
MANAGER = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/noctaya-controller-manager"


class Release:
    """The release `noctaya` of one test."""

    def __init__(self, cluster: Helm) -> None:
        self._cluster = cluster

    def install(self, chart: Path = CHART, *flags: str, values: dict[str, Any] | None = None) -> str:
        flags = ("--namespace", SYSTEM, "--create-namespace", *flags)
        return self._cluster.run("install", "noctaya", chart, *flags, values=values or {})

    def upgrade(self, chart: Path = CHART, *flags: str, values: dict[str, Any] | None = None) -> str:
        return self._cluster.run("upgrade", "noctaya", chart, "-n", SYSTEM, *flags, values=values or {})

    def rollback(self, revision: int) -> str:
        return self._cluster.run("rollback", "noctaya", str(revision), "--namespace", SYSTEM)

    def uninstall(self) -> str:
        return self._cluster.run("uninstall", "noctaya", "--namespace", SYSTEM, "--ignore-not-found")


@pytest.fixture
def release(cluster: Helm, own_crds: tuple[str, ...]) -> Iterator[Release]:
    """For a cluster without anything of ours, which is left so."""
    release = Release(cluster)
    yield release
    release.uninstall()


@pytest.fixture
def world(api: ApiClient, request: pytest.FixtureRequest) -> World:
    """A namespace for services."""
    name = f"services-{abs(hash(request.node.name)) % 10**8}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return World(api, name)


def crd(api: ApiClient, name: str = OURS[0]) -> Object:
    found: Object = api.get(f"{CRDS}/{name}")
    return found


def knows(api: ApiClient, kind: str, path: tuple[str, ...]) -> bool:
    """Whether the CRD in the cluster has a field."""
    name = next(each for each in OURS if each.startswith(kind.lower()))
    schema = crd(api, name)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in path:
        if part not in schema["properties"]:
            return False
        schema = schema["properties"][part]
    return True


def served(world: World) -> Object:
    """A service with a field that former CRDs drop."""
    world.api.wait_for_crds(OURS)
    world.api.apply(runtime())
    return world.create(cache={"retain": True}, resources={"accelerators": 0})


def test_an_upgrade_brings_the_new_crds_and_keeps_every_service(
    release: Release, api: ApiClient, world: World, tmp_path: Path
) -> None:
    release.install(former_chart(tmp_path, version="0.4.9"))
    before = served(world)
    assert not any(knows(api, kind, path) for kind, path in NEW_FIELDS)
    assert "retain" not in before["spec"]["cache"]
    uid = crd(api)["metadata"]["uid"]

    release.upgrade()
    assert all(knows(api, kind, path) for kind, path in NEW_FIELDS)
    assert crd(api)["metadata"]["uid"] == uid
    after = api.get(world.path())
    assert after["metadata"]["uid"] == before["metadata"]["uid"]

    def retained() -> bool:
        # The server serves a changed schema a moment after it took it.
        return bool(world.change(cache={"retain": True})["spec"]["cache"].get("retain"))

    wait_for(retained, what="the new field is kept")


def test_a_rollback_brings_the_former_operator_and_keeps_every_service(
    release: Release, api: ApiClient, world: World, tmp_path: Path
) -> None:
    release.install(former_chart(tmp_path, version="0.4.9"))
    before = served(world)
    image = api.get(MANAGER)["spec"]["template"]["spec"]["containers"][0]["image"]
    release.upgrade()
    release.rollback(1)
    deployment = api.get(MANAGER)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image
    assert api.get(world.path())["metadata"]["uid"] == before["metadata"]["uid"]


def test_the_alpha_s_release_is_upgraded_in_place_once_its_crds_may_be_taken_over(
    release: Release, api: ApiClient, world: World, tmp_path: Path
) -> None:
    release.install(alpha_chart(tmp_path), values={"gateway": {"replicas": 2}})
    before, deployment = served(world), api.get(MANAGER)
    with pytest.raises(
        HelmFault, match=r"CustomResourceDefinition .* cannot be imported into the current release"
    ):
        release.upgrade()
    assert api.get(MANAGER)["metadata"]["generation"] == deployment["metadata"]["generation"]

    release.upgrade(CHART, "--take-ownership", "--reset-then-reuse-values")
    assert all(knows(api, kind, path) for kind, path in NEW_FIELDS)
    assert api.get(world.path())["metadata"]["uid"] == before["metadata"]["uid"]
    after = api.get(MANAGER)
    assert after["metadata"]["uid"] == deployment["metadata"]["uid"]
    (manager,) = after["spec"]["template"]["spec"]["containers"]
    assert manager["image"].endswith("/noctaya:0.5.0")
    assert "--gateway-replicas=2" in manager["args"]
    # From now on as any other release.
    release.upgrade()
    release.rollback(1)
    assert api.get(world.path())["metadata"]["uid"] == before["metadata"]["uid"]


def test_uninstalling_leaves_crds_and_services_and_installing_again_takes_them_up(
    release: Release, api: ApiClient, world: World
) -> None:
    release.install()
    before = served(world)
    said = release.uninstall()
    assert all(f"[CustomResourceDefinition] {name}" in said or name in said for name in OURS)
    wait_for(lambda: api.find(MANAGER) is None, what="the operator is gone")
    assert api.get(world.path())["metadata"]["uid"] == before["metadata"]["uid"]
    roles = api.items("/apis/rbac.authorization.k8s.io/v1/clusterroles")
    bindings = api.items("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")
    names = {each["metadata"]["name"] for each in (*roles, *bindings)}
    assert not {name for name in names if name.startswith("noctaya-")}

    release.install()
    assert api.get(world.path())["metadata"]["uid"] == before["metadata"]["uid"]


def test_crds_left_to_somebody_else_stay_as_they_are(
    release: Release, api: ApiClient, world: World, tmp_path: Path
) -> None:
    release.install(former_chart(tmp_path, version="0.4.9"))
    before = served(world)
    generation = crd(api)["metadata"]["generation"]
    release.upgrade(values={"crds": {"install": False}})
    assert crd(api)["metadata"]["generation"] == generation
    assert api.get(world.path())["metadata"]["uid"] == before["metadata"]["uid"]


def test_who_has_edit_in_a_namespace_may_write_services_there_but_no_runtimes(
    release: Release, api: ApiClient, world: World
) -> None:
    release.install()
    served(world)
    review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    # The controller that fills aggregated roles does not run here; what it would select is looked at instead.
    found = api.items(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        labelSelector="rbac.authorization.k8s.io/aggregate-to-edit=true,app.kubernetes.io/part-of=noctaya",
    )
    rules = [rule for each in found for rule in each["rules"]]
    api.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "as-edit-would-be"},
            "rules": rules,
        }
    )
    api.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "developer", "namespace": world.namespace},
            "roleRef": {**role, "name": "as-edit-would-be"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "developer"}],
        }
    )

    def allowed(verb: str, resource: str, namespace: str) -> bool:
        asked = {"verb": verb, "group": "serving.noctaya.io", "resource": resource, "namespace": namespace}
        body = {"spec": {"user": "developer", "resourceAttributes": asked}}
        return bool(api.request("POST", review, body)["status"]["allowed"])

    wait_for(lambda: allowed("create", "llmservices", world.namespace), what="the binding is known")
    assert allowed("delete", "llmservices", world.namespace)
    assert not allowed("create", "llmservices", "default")
    assert not allowed("create", "inferenceruntimes", world.namespace)
