"""What the `noctaya` commands ask of a cluster is just what the roles of examples/security/roles allow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from noctaya_apiserver import ApiClient, ControlPlane
from noctaya_apiserver.client import Object, load_objects
from noctaya_apiserver.noctaya import REPOSITORY
from noctaya_apiserver.users import User, write_kubeconfig
from noctaya_apiserver.world import World
from noctaya_cli.cluster.operator_checks import SELECTOR

ROLES: Final = {
    each["metadata"]["name"]: each for each in load_objects(REPOSITORY / "examples/security/roles/roles.yaml")
}
PROXY: Final = ("", "pods/proxy", "get")
"""Refused here whatever the rights: behind these Pods is nothing that could be asked."""
SECRET: Final = ("", "secrets", "get")
"""Asked for, and not granted, where another test's service has certificates."""
Right = tuple[str, str, str]


class Person:
    """A ServiceAccount with roles, and the `noctaya` command with its kubeconfig."""

    def __init__(self, plane: ControlPlane, world: World, folder: Path, roles: tuple[str, ...]) -> None:
        self._plane = plane
        api, namespace = world.api, world.namespace
        metadata = {"name": "person", "namespace": namespace}
        api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        subject = {"kind": "ServiceAccount", **metadata}
        for role in roles:
            api.apply(ROLES[role])
            api.create(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRoleBinding",
                    "metadata": {"name": f"{namespace}-{role}"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                    "subjects": [subject],
                }
            )
        review: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/person/token"
        token = api.request("POST", path, review)["status"]["token"]
        self.name = f"system:serviceaccount:{namespace}:person"
        self._kubeconfig = folder / "kubeconfig"
        write_kubeconfig(
            User(self.name, token=token), self._kubeconfig, server=plane.server, ca_file=plane.ca_file
        )

    def run(self, *command: str) -> int:
        """The exit code of a command."""
        program = Path(sys.executable).with_name("noctaya")
        line = [str(program), *command, "--kubeconfig", str(self._kubeconfig)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=90, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    def asked(self, *, refused: bool = False) -> set[Right]:
        """Rights that it used, or was `refused`."""
        return {
            (
                each.group,
                f"{each.resource}/{each.subresource}" if each.subresource else each.resource,
                each.verb,
            )
            for each in self._plane.requests()
            if each.user == self.name and each.resource and (each.code == 403 or not refused)
        }


def granted(*roles: str) -> set[Right]:
    return {
        (rule["apiGroups"][0], resource, verb)
        for role in roles
        for rule in ROLES[role]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture
def deployed(api: ApiClient) -> Iterator[None]:
    """What doctor finds of an installed operator and of cluster DNS, as far as it leads to more questions."""
    labels = dict(pair.split("=") for pair in SELECTOR.split(","))
    container = {"name": "operator", "image": "example.com/operator:1", "args": ["--leader-elect"]}
    operator: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "noctaya", "namespace": "noctaya-system", "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    dns: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"ports": [{"port": 53}]},
    }
    for obj in (operator, dns):
        api.apply(obj)
    yield
    api.delete("/apis/apps/v1/namespaces/noctaya-system/deployments/noctaya")
    api.delete("/api/v1/namespaces/kube-system/services/kube-dns")


def test_an_observer_sees_services_and_why_they_are_slow(
    plane: ControlPlane, world: World, tmp_path: Path
) -> None:
    world.create()
    world.await_phase("ScaledToZero")
    person = Person(plane, world, tmp_path, ("noctaya-observer",))
    assert person.run("status", "-A") == 0
    assert person.run("explain", "chat", "-n", world.namespace) == 0
    assert person.asked() == granted("noctaya-observer")
    assert person.asked(refused=True) <= {PROXY}
    assert person.run("wake", "chat", "-n", world.namespace) != 0
    assert person.asked(refused=True) - {PROXY} == {("serving.noctaya.io", "llmservices", "patch")}


def test_a_keeper_wakes_pins_and_puts_to_sleep(plane: ControlPlane, world: World, tmp_path: Path) -> None:
    world.create()
    world.await_phase("ScaledToZero")
    person = Person(plane, world, tmp_path, ("noctaya-keeper",))
    for command in ("wake", "pin", "unpin", "sleep"):
        assert person.run(command, "chat", "-n", world.namespace) == 0, command
    assert person.asked() == granted("noctaya-keeper")
    assert not person.asked(refused=True)


def test_a_doctor_examines_the_whole_cluster(
    plane: ControlPlane, world: World, tmp_path: Path, deployed: None
) -> None:
    world.create()
    world.await_phase("ScaledToZero")
    person = Person(plane, world, tmp_path, ("noctaya-observer", "noctaya-doctor"))
    assert person.run("doctor") in {0, 1}
    assert person.asked(refused=True) <= {PROXY, SECRET}
    both = granted("noctaya-doctor", "noctaya-observer")
    assert granted("noctaya-doctor") <= person.asked() <= both | {SECRET}
