"""The API server goes away and comes back: the operator stays, and goes on by itself."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from noctaya_apiserver import ControlPlane, wait_for
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World

pytestmark = pytest.mark.timeout(300)
RECOVERY = 150.0
"""Seconds. Controllers and stand-ins have to come back as well, each after up to half a minute."""

Start = Callable[..., OperatorProcess]


def test_an_api_server_that_restarts_is_followed_again(
    workshop: ControlPlane, bench: World, start_operator: Start
) -> None:
    operator = start_operator()
    bench.create()
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    pid = operator.child.pid
    workshop.stop_apiserver()
    time.sleep(3.0)  # long enough for every watch to fail and to be tried again some times
    assert operator.child.running
    workshop.start_apiserver()
    bench.create("after")
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", "after", within=RECOVERY)
    wait_for(operator.ready, within=RECOVERY, what="readiness")
    assert (operator.child.pid, operator.child.running) == (pid, True)
    assert operator.metric("workqueue_depth") == 0


def test_an_operator_started_before_the_api_server_waits_for_it(
    workshop: ControlPlane, bench: World, start_operator: Start
) -> None:
    bench.create()
    workshop.stop_apiserver()
    operator = start_operator(ready=False)
    time.sleep(1.0)
    assert not operator.ready()
    workshop.start_apiserver()
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", within=RECOVERY)
    wait_for(operator.ready, within=RECOVERY, what="readiness")
