"""O10, M3: Secrets of a cluster stay in Secrets: the operator and the CLI write them into no log, object,
Event, metric or argument."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from noctaya_apiserver import ControlPlane, wait_for
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.noctaya import OPERATOR, new_namespace, noctaya_plane
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.users import User, write_kubeconfig
from noctaya_apiserver.world import World, runtime, stand_ins

from .canaries import leaks
from .programs import Program

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


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with noctaya_plane(tmp_path_factory.mktemp("plane")) as plane, stand_ins(plane):
        yield plane


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


def test_o10_secrets_of_a_cluster_are_written_nowhere(plane: ControlPlane, tmp_path: Path) -> None:
    api = plane.client()
    world = World(api, new_namespace(api))
    api.apply(runtime())
    api.apply(runtime("broken", image="example.com/missing:1"))
    operator = OperatorProcess(
        plane.kubeconfig(OPERATOR), tmp_path, "--gateway-replicas=2", "--log-level=debug"
    )
    operator.start()
    try:
        arguments = Path(f"/proc/{operator.child.pid}/cmdline").read_bytes()
        for name, spec in services(world).items():
            world.create(name, **spec)
        for name in ("hub", "bucket", "artifact", "keyed", "private", "doomed"):
            world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name)
        scale(api, namespace=world.namespace, deployment="doomed", replicas=1)
        world.await_condition("Degraded", "True", "ImagePullFailed", "doomed")
        metrics = operator.metrics()
        known = {**SECRETS, **tokens(plane, world), "the operator's token": plane.user(OPERATOR).token}
    finally:
        operator.stop()
    assert sum("demand token" in name for name in known) == 6
    places: dict[str, str | bytes] = {path: json.dumps(api.get(path)) for path in OBJECTS}
    places |= {
        "output of the operator": operator.log.read_bytes(),
        "arguments of the operator": arguments,
        "metrics of the operator": metrics,
    }
    assert b'"level": "debug"' in operator.log.read_bytes()
    assert not leaks(known, places)


def tokens(plane: ControlPlane, world: World) -> dict[str, str]:
    """The demand tokens that the operator made."""
    path = f"/api/v1/namespaces/{world.namespace}/secrets"
    wait_for(lambda: len(plane.client().items(path)) == 5 + 6, what="a demand token for each service")
    return {
        f"demand token of {each['metadata']['name']}": base64.b64decode(each["data"]["token"]).decode()
        for each in plane.client().items(path)
        if each["metadata"]["name"].endswith("-demand-auth")
    }


@pytest.mark.parametrize(
    "command",
    [
        ("status", "-A"),
        ("status", "-A", "-o", "json"),
        ("doctor",),
        ("doctor", "-o", "json"),
        ("explain", "hub"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("known", [True, False], ids=["a good token", "a refused token"])
def test_a_users_token_is_shown_by_no_command(
    plane: ControlPlane, tmp_path: Path, command: tuple[str, ...], known: bool
) -> None:
    user = plane.user() if known else User("nobody", token=SECRETS["wrong user token"])
    file = tmp_path / "kubeconfig"
    write_kubeconfig(user, file, server=plane.server, ca_file=plane.ca_file)
    program = Program("noctaya", *command, "--kubeconfig", str(file), env={}, folder=tmp_path)
    with program:
        assert program.end() in {0, 1}
    assert program.output
    assert not leaks({"the user's token": user.token}, program.places())
