"""O10, M3: Secrets of a cluster stay in Secrets, credentials in kubeconfigs: the operator and the CLI write
them into no log, object, Event, metric, argument or file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from noctaya_apiserver import ControlPlane, wait_for
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.noctaya import OPERATOR, new_namespace, noctaya_plane
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.users import User, write_kubeconfig
from noctaya_apiserver.world import World, runtime, stand_ins

from .canaries import files_below, leaks
from .programs import Program, eventually

pytestmark = pytest.mark.timeout(300)
"""The first test also waits for the API server and for seven services."""
SECRETS = {
    "hub token": "canary-hub-token-1ff1de774005",
    "S3 key": "canary-s3-key-8d0b6e8a7e22",
    "registry login": "canary-registry-a5771bce93e2",
    "client key": "canary-client-key-d67d8ab4f4c1",
    "TLS key": "canary-tls-key-d645920e395f",
    "wrong user token": "canary-user-token-3416a75f4cea",
}
OBJECTS = (
    "/apis/serving.noctaya.io/v1alpha1/llmservices",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/jobs",
    "/api/v1/pods",
    "/api/v1/services",
    "/api/v1/configmaps",
    "/apis/keda.sh/v1alpha1/scaledobjects",
    "/apis/events.k8s.io/v1/events",
)
"""Everything that may be read without the right to read Secrets."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A cluster with the operator at its most verbose level and a service for each kind of Secret."""

    plane: ControlPlane
    world: World
    operator: OperatorProcess
    known: dict[str, str]
    """Everything that must not be found."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("plane")
    with noctaya_plane(folder) as plane, stand_ins(plane):
        api = plane.client()
        world = World(api, new_namespace(api))
        api.apply(runtime())
        api.apply(runtime("broken", image="example.com/missing:1"))
        operator = OperatorProcess(
            plane.kubeconfig(OPERATOR), folder, "--gateway-replicas=2", "--log-level=debug"
        )
        operator.start()
        try:
            for name, spec in services(world).items():
                world.create(name, **spec)
            for name in ("hub", "bucket", "artifact", "keyed", "private", "doomed"):
                world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name)
            scale(api, namespace=world.namespace, deployment="doomed", replicas=1)
            world.await_condition("Degraded", "True", "ImagePullFailed", "doomed")
            known = {**SECRETS, **tokens(plane, world), "the operator's token": plane.user(OPERATOR).token}
            yield Scene(plane=plane, world=world, operator=operator, known=known)
        finally:
            operator.stop()


def secret(world: World, name: str, key: str, value: str) -> None:
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": world.namespace},
            "data": {key: base64.b64encode(value.encode()).decode()},
        }
    )


def services(world: World) -> dict[str, dict[str, Any]]:
    """A service for each kind of Secret that a spec may name."""
    login = {
        "auths": {"registry": {"auth": base64.b64encode(f"u:{SECRETS['registry login']}".encode()).decode()}}
    }
    secret(world, "hub", "token", SECRETS["hub token"])
    secret(world, "s3", "AWS_SECRET_ACCESS_KEY", SECRETS["S3 key"])
    secret(world, "registry", ".dockerconfigjson", json.dumps(login))
    secret(world, "keys", "keys", SECRETS["client key"])
    secret(world, "tls", "tls.key", SECRETS["TLS key"])
    digest = "0123456789abcdef" * 4
    source = {"uri": f"oci://registry/model@sha256:{digest}", "secretRef": {"name": "registry"}}
    tls = {"serverSecretName": "tls", "authenticationRef": {"name": "mtls"}}
    return {
        "hub": {
            "model": {"source": {"uri": "hf://org/model", "secretRef": {"name": "hub"}}},
            "cache": {"prewarm": True},
        },
        "bucket": {"model": {"source": {"uri": "s3://bucket/model", "secretRef": {"name": "s3"}}}},
        "artifact": {"model": {"source": source}, "imagePullSecrets": [{"name": "registry"}]},
        "keyed": {"endpoint": {"authentication": {"secretRef": {"name": "keys", "key": "keys"}}}},
        "private": {"scaling": {"externalScaler": {"tls": tls}}},
        "doomed": {"runtime": {"name": "broken"}},
    }


def test_o10_secrets_of_a_cluster_are_written_nowhere(scene: Scene) -> None:
    api, operator = scene.world.api, scene.operator
    assert sum("demand token" in name for name in scene.known) == 6
    places: dict[str, str | bytes] = {path: json.dumps(api.get(path)) for path in OBJECTS}
    places |= {
        "output of the operator": operator.log.read_bytes(),
        "arguments of the operator": Path(f"/proc/{operator.child.pid}/cmdline").read_bytes(),
        "metrics of the operator": operator.metrics(),
    }
    assert b'"level": "debug"' in operator.log.read_bytes()
    assert not leaks(scene.known, places)


def tokens(plane: ControlPlane, world: World) -> dict[str, str]:
    """The demand tokens that the operator made."""
    path = f"/api/v1/namespaces/{world.namespace}/secrets"
    wait_for(lambda: len(plane.client().items(path)) == 5 + 6, what="a demand token for each service")
    return {
        f"demand token of {each['metadata']['name']}": base64.b64decode(each["data"]["token"]).decode()
        for each in plane.client().items(path)
        if each["metadata"]["name"].endswith("-demand-auth")
    }


class Person:
    """Somebody with a kubeconfig that holds a token, a certificate and its private key, and what the commands
    leave behind beside it."""

    def __init__(self, plane: ControlPlane, user: User, folder: Path) -> None:
        self.home, self.scratch = folder / "home", folder / "home" / "scratch"
        self.scratch.mkdir(parents=True)
        self._kubeconfig = folder / "kubeconfig"
        write_kubeconfig(user, self._kubeconfig, server=plane.server, ca_file=plane.ca_file)
        config = yaml.safe_load(self._kubeconfig.read_text())
        certificate = trustme.CA().issue_cert("somebody.example.com")
        key = certificate.private_key_pem.bytes()
        config["users"][0]["user"] |= {
            "client-certificate-data": base64.b64encode(certificate.cert_chain_pems[0].bytes()).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        }
        self._kubeconfig.write_text(yaml.safe_dump(config))
        line = key.decode().splitlines()[1]
        self.secrets = {"the user's token": user.token, "the user's private key": line}

    def command(self, *words: str) -> Program:
        """One command, started."""
        line = (*words, "--kubeconfig", str(self._kubeconfig))
        return Program("noctaya", *line, env={"TMPDIR": str(self.scratch)}, folder=self.home)


COMMANDS = (
    ("status", "-A"),
    ("status", "-A", "-o", "json"),
    ("doctor",),
    ("doctor", "-o", "json"),
    ("explain", "hub"),
    ("explain", "doomed"),
    ("explain", "doomed", "-o", "json"),
    ("explain", "doomed", "-o", "svg"),
    ("wake", "hub"),
    ("pin", "keyed", "--for", "1h", "-o", "json"),
    ("unpin", "keyed"),
    ("sleep", "private"),
    ("wake", "doomed", "--wait", "--timeout", "1s"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_shows_or_leaves_a_secret(scene: Scene, tmp_path: Path, command: tuple[str, ...]) -> None:
    person = Person(scene.plane, scene.plane.user(), tmp_path)
    within = () if "-A" in command or "doctor" in command else ("-n", scene.world.namespace)
    with person.command(*command, *within) as program:
        assert program.end() in {0, 1, 3}, program.output
    assert program.output
    assert "credential" not in program.output
    places = {**program.places(), **files_below(person.home)}
    assert not leaks({**scene.known, **person.secrets}, places)
    assert list(person.scratch.iterdir()) == []


@pytest.mark.parametrize("command", [("status", "-A"), ("doctor",), ("wake", "hub")], ids=" ".join)
def test_a_credential_that_is_refused_is_shown_by_no_command(
    scene: Scene, tmp_path: Path, command: tuple[str, ...]
) -> None:
    person = Person(scene.plane, User("nobody", token=SECRETS["wrong user token"]), tmp_path)
    with person.command(*command) as program:
        assert program.end() == 1
    assert "not accept" in program.output
    assert not leaks(person.secrets, {**program.places(), **files_below(person.home)})


def test_a_command_that_is_told_to_end_takes_the_private_key_with_it(scene: Scene, tmp_path: Path) -> None:
    person = Person(scene.plane, scene.plane.user(), tmp_path)
    waiting = ("wake", "doomed", "--wait", "--timeout", "50s", "-n", scene.world.namespace)
    with person.command(*waiting) as program:
        eventually(lambda: " s  " in program.output, what="a command that waits")
        assert list(person.scratch.iterdir()) != [], "where the client keeps the key"
        assert program.end(stop=True) == 128 + 15
    assert list(person.scratch.iterdir()) == []
