"""O9: what it costs the API server, counted in its own audit log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from noctaya_apiserver import ControlPlane, Request, wait_for
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.noctaya import OPERATOR
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import API, World

QUIET = 8.0
"""Seconds that are watched."""
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "spelled": {
        "resources": {"cpu": "1000m", "memory": "2048Mi"},
        "endpoint": {"resources": {"requests": {"cpu": "0.5"}, "limits": {"memory": "1024Mi"}}},
    },
    "shared": {"cache": {"strategy": "SharedPVC", "prewarm": True, "size": "2048Mi"}},
    "host": {"cache": {"strategy": "HostPath"}, "scaling": {"min": 0, "max": 3, "drainTimeout": "1.5s"}},
    "staged": {"model": {"source": {"uri": "pvc://models/tiny"}}, "cache": {"strategy": "None"}},
    "refused": {"model": {"source": {"uri": "gs://b/k"}}},
}

Start = Callable[..., OperatorProcess]


def by_operator(plane: ControlPlane, *, namespace: str | None = None) -> list[Request]:
    found = (request for request in plane.requests() if request.user == OPERATOR)
    return [request for request in found if namespace is None or request.namespace == namespace]


def writes(requests: Iterable[Request]) -> Counter[str]:
    """Writes by verb and kind."""
    kinds = (
        f"{request.verb} {request.resource}{'/' if request.subresource else ''}{request.subresource}"
        for request in requests
        if request.writes
    )
    return Counter(kinds)


def settle(world: World, plane: ControlPlane) -> None:
    """Make all shapes, let one serve, and wait until nothing is written any more."""
    for name, spec in SHAPES.items():
        world.create(name, **spec)
    for name in SHAPES:
        if name == "refused":
            world.await_condition("Degraded", "True", "ModelResolution", name)
        else:
            world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name)
            world.await_phase("ScaledToZero", name)
    scale(world.api, namespace=world.namespace, deployment="plain", replicas=1)
    world.await_phase("Ready", "plain")
    # Runtimes count their services ten seconds after the last of them came; one that is refused has none.
    wait_for(lambda: counted(world) == len(SHAPES) - 1, within=60.0, what="the runtime counts its services")
    await_silence(plane)


def counted(world: World) -> int:
    """Services that the runtime says it has."""
    runtime = world.api.get(f"/apis/{API}/inferenceruntimes/engine")
    found: int = (runtime.get("status") or {}).get("services", 0)
    return found


def await_silence(plane: ControlPlane, *, seconds: float = 2.0) -> None:
    """Return once no write was seen for a while."""

    def silent() -> bool:
        before = sum(writes(by_operator(plane)).values())
        time.sleep(seconds)
        return sum(writes(by_operator(plane)).values()) == before

    wait_for(silent, within=60.0, what="an end of writes")


def test_o9_steady_state_writes_nothing_and_hardly_reads(
    workshop: ControlPlane, bench: World, start_operator: Start
) -> None:
    start_operator()
    settle(bench, workshop)
    objects = versions(bench)
    already = len(by_operator(workshop))
    time.sleep(QUIET)
    asked = [request for request in by_operator(workshop)[already:] if request.verb != "watch"]
    assert not writes(asked)
    assert len(asked) < QUIET, Counter(f"{each.verb} {each.resource}" for each in asked)
    assert versions(bench) == objects


def test_o9_a_restarted_operator_finds_everything_in_order_and_writes_nothing(
    workshop: ControlPlane, bench: World, start_operator: Start
) -> None:
    first = start_operator()
    settle(bench, workshop)
    assert first.stop() == 0
    already = len(by_operator(workshop))
    second = start_operator()
    passes = "controller_runtime_reconcile_total"
    wait_for(lambda: second.metric(passes) >= len(SHAPES), what="one pass over each")
    await_silence(workshop)
    assert not writes(by_operator(workshop)[already:])


def test_o9_a_new_service_takes_at_most_twelve_writes(
    workshop: ControlPlane, bench: World, start_operator: Start
) -> None:
    start_operator()
    bench.create()
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    await_silence(workshop)
    counted = writes(by_operator(workshop, namespace=bench.namespace))
    assert sum(counted.values()) <= 12, counted


def versions(world: World) -> dict[str, tuple[str, int]]:
    """Owner's view of all objects: what others may write (a status) is left out."""
    return {
        name: (str(obj["metadata"].get("generation")), len(obj["metadata"].get("managedFields", [])))
        for name, obj in world.objects().items()
    }
