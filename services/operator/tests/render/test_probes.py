"""Probes of the engine, the rollout's patience, the path the gateway asks for."""

from __future__ import annotations

import pytest
from noctaya_operator.kube.objects import Object
from samples import backend, engine, env_of, gateway, plan, pod_of, runtime

HEALTH = {"path": "/health", "port": "http"}


def test_r6_the_defaults_are_a_get_of_health_with_ten_minutes_to_start() -> None:
    container = engine(plan())
    assert container["readinessProbe"] == {"httpGet": HEALTH}
    assert container["startupProbe"] == {"httpGet": HEALTH, "periodSeconds": 10, "failureThreshold": 60}
    assert "livenessProbe" not in container


def test_the_defaults_follow_the_name_of_the_port() -> None:
    on = runtime(container={"port": {"name": "api"}})
    assert engine(plan(on=on))["readinessProbe"]["httpGet"]["port"] == "api"


@pytest.mark.parametrize(
    ("startup", "seconds"),
    [
        (None, 1200),
        ({"periodSeconds": 10, "failureThreshold": 180}, 2400),
        ({"periodSeconds": 1, "failureThreshold": 120, "initialDelaySeconds": 30}, 750),
        ({}, 630),
        ({"periodSeconds": 0, "failureThreshold": 0}, 630),
        ({"periodSeconds": 2**30, "failureThreshold": 2**30}, 2**31 - 1),
        ({"periodSeconds": -5}, 600),
    ],
)
def test_o8_a_rollout_may_take_as_long_as_the_startup_probe_grants(
    startup: Object | None, seconds: int
) -> None:
    health = {} if startup is None else {"startup": {"httpGet": HEALTH, **startup}}
    assert backend(plan(on=runtime(health=health)))["spec"]["progressDeadlineSeconds"] == seconds


def asked(**health: Object) -> str:
    on = runtime(container={"port": {"containerPort": 9000}}, health=health)
    return env_of(pod_of(gateway(plan(on=on)))["containers"][0])["NOCTAYA_HEALTH_PATH"]


@pytest.mark.parametrize("port", ["http", 9000])
def test_g6_the_gateway_asks_for_the_runtimes_own_readiness(port: object) -> None:
    assert asked(readiness={"httpGet": {"path": "/v2/ready", "port": port}}) == "/v2/ready"


@pytest.mark.parametrize(
    "readiness",
    [
        {"exec": {"command": ["true"]}},
        {"tcpSocket": {"port": 9000}},
        {"httpGet": {"path": "/ready", "port": 1}},
        {"httpGet": {"path": "/ready", "port": "metrics"}},
        {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTPS"}},
        {"httpGet": {"path": "/ready", "port": "http", "host": "elsewhere"}},
    ],
)
def test_g6_a_probe_the_gateway_can_not_make_is_replaced_by_one_it_can(readiness: Object) -> None:
    assert asked(readiness=readiness) == "/health"
    startup = {"httpGet": {"path": "/started", "port": "http"}}
    assert asked(readiness=readiness, startup=startup) == "/started"
    assert asked(readiness=readiness, liveness=startup) == "/started"


@pytest.mark.parametrize(
    ("path", "sent"),
    [("ready", "/ready"), ("/a b", "/a%20b"), ("/ä", "/%C3%A4"), ("/a%20b?x=1&y", "/a%20b?x=1&y")],
)
def test_a_path_is_written_as_the_gateway_takes_it(path: str, sent: str) -> None:
    assert asked(readiness={"httpGet": {"path": path, "port": "http"}}) == sent


def test_a_probe_without_a_path_asks_for_the_root() -> None:
    assert asked(readiness={"httpGet": {"port": "http"}}) == "/"
