"""E5: with the network policies of the examples everything works, and nobody else gets in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.manifests import STUB_IMAGE
from noctaya_scenarios.release import REPOSITORY
from noctaya_scenarios.samples import sample
from noctaya_scenarios.scene import Scene, holds

POLICIES = REPOSITORY / "examples" / "security" / "network-policies-monitoring"
FETCH = """
import sys, urllib.request
body = sys.argv[2].encode() if len(sys.argv) > 2 else None
request = urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})
try:
    with urllib.request.urlopen(request, timeout=90 if body else 4) as answer:
        print(answer.status, answer.read().decode())
except OSError as error:
    print(type(error).__name__)
"""
QUESTION = '{"model": "stub", "messages": [], "max_tokens": 2}'


class Visitor:
    """A Pod in a namespace of its own that fetches URLs."""

    def __init__(self, lab: Lab, scene: Scene) -> None:
        self._lab, self.namespace = lab, scene.namespace
        container = {"name": "visitor", "image": STUB_IMAGE, "command": ["/bin/sh", "-c", "sleep 900"]}
        metadata = {"name": "visitor", "namespace": self.namespace}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        lab.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        path = f"/api/v1/namespaces/{self.namespace}/pods/visitor"
        scene.until(lambda: holds(lab.api.get(path)["status"], "Ready"), within=120, what="a visitor")

    def fetch(self, url: str, *body: str) -> str:
        """Status and body, or the name of what went wrong; a POST if there is a body."""
        command = ("python3", "-c", FETCH, url, *body)
        return self._lab.access.kubectl("-n", self.namespace, "exec", "visitor", "--", *command).strip()

    def gets(self, url: str) -> bool:
        """Whether it gets in."""
        return self.fetch(url).split(" ")[0] == "200"


@contextmanager
def visiting(lab: Lab, name: str, **labels: str) -> Iterator[Visitor]:
    """A visitor whose namespace has these labels."""
    with lab.scene(name) as scene:
        marked = {f"serving.noctaya.io/{label}": value for label, value in labels.items()}
        lab.api.merge(f"/api/v1/namespaces/{scene.namespace}", {"metadata": {"labels": marked}})
        yield Visitor(lab, scene)


@pytest.fixture
def client(lab: Lab) -> Iterator[Visitor]:
    with visiting(lab, "client", **{"client-access": "true"}) as visitor:
        yield visitor


@pytest.fixture
def monitor(lab: Lab) -> Iterator[Visitor]:
    with visiting(lab, "monitor", **{"monitoring-access": "true"}) as visitor:
        yield visitor


@pytest.fixture
def stranger(lab: Lab) -> Iterator[Visitor]:
    with visiting(lab, "stranger") as visitor:
        yield visitor


@pytest.mark.long
def test_e5_policies_let_in_clients_keda_and_gateways_and_nobody_else(
    lab: Lab, scene: Scene, client: Visitor, monitor: Visitor, stranger: Visitor
) -> None:
    scene.deploy(scaling={"scaleDownStabilization": "20s"})
    lab.access.kubectl("-n", scene.namespace, "apply", "-k", str(POLICIES))
    health = f"http://chat.{scene.namespace}.svc/healthz"
    scene.until(lambda: not stranger.gets(health), within=120, what="a stranger is kept out")
    scene.until(lambda: client.gets(health), within=120, what="a client gets in")
    # Connections that were there before the policies tell nothing: the scaler is made anew.
    (old,) = scene.ready_pods("scaler")
    scene.delete_pod(old, grace=0)
    scene.until(lambda: scene.ready_pods("scaler") not in ([], [old]), within=120, what="another scaler")
    (scaler,) = scene.pods("scaler", leaving=False)
    metrics = f"http://{scaler['status']['podIP']}:9091/metrics"
    scene.until(lambda: not client.gets(metrics), within=60, what="a client is kept from the scaler")

    def connected() -> bool:
        text = monitor.fetch(metrics)
        members = sample(text, "noctaya_scaler_gateway_members")
        return (members, sample(text, "noctaya_gateway_scaler_streams")) == (scene.gateways, 1)

    scene.until(connected, within=120, what="every gateway and KEDA reach the scaler")
    completions = f"http://chat.{scene.namespace}.svc/v1/chat/completions"
    assert client.fetch(completions, QUESTION).startswith("200 "), "a cold request is served"
    (pod,) = scene.pods("backend")
    backend = f"http://{pod['status']['podIP']}:8000/health"
    scene.until(lambda: monitor.gets(backend), within=60, what="a monitor reaches the backend")
    scene.until(lambda: not client.gets(backend), within=60, what="a client is kept from the backend")
    scene.await_zero()
