"""Every object of some services, whole: golden/ holds a folder a service and a file an object.

`pytest services/operator/tests/render --update-golden` writes them anew; the diff is the review.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import Rendered, render_all
from samples import OCI, TOKEN, plan, runtime, service

GOLDEN = Path(__file__).parent / "golden"
Case = tuple[Callable[[], ServicePlan], bool]


def minimal() -> ServicePlan:
    return plan()


def everything() -> ServicePlan:
    """Several gateways, mutual TLS, keys, a shared prewarmed cache, a queue, a drain."""
    given = service(
        uri="modelscope://org/model@v2",
        runtime={"argsOverride": ["--name={{ .Service.Namespace }}/{{ .Service.Name }}"]},
        resources={"accelerators": 2, "cpu": "8000m", "memory": "32768Mi"},
        scaling={
            "min": 1,
            "max": 3,
            "target": 4,
            "activationTimeout": "10m",
            "scaleDownStabilization": "90s",
            "drainTimeout": "1.5s",
            "externalScaler": {
                "tls": {
                    "serverSecretName": "scaler-tls",
                    "authenticationRef": {"name": "keda-mtls", "kind": "ClusterTriggerAuthentication"},
                }
            },
        },
        cache={"strategy": "SharedPVC", "size": "20Gi", "storageClassName": "rwx", "prewarm": True},
        endpoint={
            "maxQueue": 7,
            "resources": {"requests": {"cpu": "0.5"}, "limits": {"memory": "1024Mi"}},
            "authentication": {"secretRef": {"name": "keys", "key": "current"}},
        },
        imagePullSecrets=[{"name": "pull"}, {"name": "other"}, {"name": "pull"}, {}],
    )
    on = runtime(
        container={
            "command": ["engine"],
            "env": [
                {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
                {"name": "LOGS", "value": "{{ .Service.Name }}"},
            ],
            "port": {"name": "api", "containerPort": 9000},
        },
        accelerator={
            "nodeSelector": {"gpu": "a100"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "scheduler": {"name": "volcano", "queue": "models"},
        },
        health={
            "readiness": {"httpGet": {"path": "/ready", "port": "api"}, "periodSeconds": 5},
            "liveness": {"httpGet": {"path": "/live", "port": 9000}, "failureThreshold": 6},
            "startup": {"httpGet": {"path": "/ready", "port": "api"}, "failureThreshold": 180},
        },
        lifecycle={"terminationGracePeriodSeconds": 120, "preStopDrain": True},
    )
    return plan(given, on=on, gateways=5)


def private_oci() -> ServicePlan:
    return plan(service(uri=OCI, model={"source": {"secretRef": {"name": "registry"}}}))


def oci_on_a_host_path() -> ServicePlan:
    return plan(service(uri=OCI, namespace="team-a", cache={"strategy": "HostPath"}))


def ascend_with_staged_weights() -> ServicePlan:
    given = service(uri="pvc://models/tiny/v1", cache={"strategy": "None"})
    on = runtime(vendor="ascend", lifecycle={"preStopDrain": True})
    return plan(given, on=on)


def cpu_on_a_host_path() -> ServicePlan:
    given = service(
        cache={"strategy": "HostPath", "prewarm": True},
        endpoint={"coldStart": {"mode": "reject", "heartbeats": False, "heartbeatInterval": "1500ms"}},
    )
    env = [{"name": "HF_HOME", "value": "/cache/hub"}, {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]
    return plan(given, on=runtime(vendor="cpu", family="llamacpp", container={"env": env}))


def retained_on_one_node() -> ServicePlan:
    given = service(scaling={"max": 2}, cache={"prewarm": True, "retain": True, "size": "2048Mi"})
    return plan(given, on=runtime(vendor="amd"))


CASES: dict[str, Case] = {
    "minimal": (minimal, False),
    "everything": (everything, False),
    "private_oci": (private_oci, True),
    "oci_on_a_host_path": (oci_on_a_host_path, False),
    "ascend_with_staged_weights": (ascend_with_staged_weights, False),
    "cpu_on_a_host_path": (cpu_on_a_host_path, False),
    "retained_on_one_node": (retained_on_one_node, True),
}


def as_yaml(each: Rendered) -> str:
    how = f"# {each.mode}, {each.step}{'' if each.controlled else ', not controlled'}\n"
    return how + yaml.safe_dump(each.object, sort_keys=False, width=200)


@pytest.mark.parametrize("case", CASES)
def test_every_object_is_as_recorded(case: str, request: pytest.FixtureRequest) -> None:
    make, hold = CASES[case]
    found = render_all(make(), demand_token=TOKEN, hold_at_zero=hold)
    folder = GOLDEN / case
    texts = {f"{each.ref.resource.kind}-{each.ref.key.name}.yaml": as_yaml(each) for each in found}
    if request.config.getoption("--update-golden"):
        folder.mkdir(parents=True, exist_ok=True)
        for left in set(folder.iterdir()) - {folder / name for name in texts}:
            left.unlink()
        for name, text in texts.items():
            (folder / name).write_text(text)
    assert texts == {file.name: file.read_text() for file in folder.iterdir()}


def test_no_recording_is_left_over() -> None:
    assert {folder.name for folder in GOLDEN.iterdir()} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_o2_every_rendered_name_is_a_listed_one(case: str) -> None:
    planned = CASES[case][0]()
    refs = tuple(each.ref for each in render_all(planned, demand_token=TOKEN))
    assert refs == planned.wanted_names()
    listed = planned.owned_names()
    assert set(refs) | {each.ref for each in planned.obsolete()} <= set(listed)
    assert set(refs).isdisjoint(each.ref for each in planned.obsolete())


@pytest.mark.parametrize("case", CASES)
def test_rendering_twice_gives_the_same_and_shares_nothing(case: str) -> None:
    planned = CASES[case][0]()
    first, second = (render_all(planned, demand_token=TOKEN) for _ in range(2))
    assert first == second
    # YAML writes an anchor for whatever stands in two places.
    text = "".join(yaml.safe_dump([each.object for each in first]))
    assert "&id" not in text
    first[0].object["metadata"]["labels"]["changed"] = "yes"
    assert render_all(planned, demand_token=TOKEN) == second


@pytest.mark.parametrize("case", CASES)
def test_every_object_says_which_service_it_is_for(case: str) -> None:
    for each in render_all(CASES[case][0](), demand_token=TOKEN):
        metadata = each.object["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "noctaya"
        assert (metadata["namespace"], metadata["name"]) == (each.ref.key.namespace, each.ref.key.name)
        assert "ownerReferences" not in metadata
