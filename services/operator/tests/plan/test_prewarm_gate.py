"""When a service is kept at no replicas for its weights."""

from __future__ import annotations

from typing import Any

import pytest
from noctaya_operator.prewarm_gate import JobState, defers_rollout, failure_message, holds_back, job_state
from samples import OCI, plan, service

COMPLETE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {
    "status": {
        "conditions": [
            {"type": "FailureTarget", "status": "True"},
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "four times"},
        ]
    }
}
RUNNING = {"status": {"active": 1, "conditions": [{"type": "Complete", "status": "False"}]}}


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (None, JobState.ABSENT),
        ({}, JobState.RUNNING),
        ({"status": None}, JobState.RUNNING),
        ({"status": {"conditions": [None, "odd"]}}, JobState.RUNNING),
        (RUNNING, JobState.RUNNING),
        (COMPLETE, JobState.COMPLETE),
        (FAILED, JobState.FAILED),
    ],
)
def test_a_job_is_read_by_its_conditions(job: dict[str, Any] | None, state: JobState) -> None:
    assert job_state(job) is state


def test_a_failed_job_says_why() -> None:
    assert failure_message(FAILED) == "four times"
    assert failure_message(RUNNING) == ""


OPTIONAL = plan(service(cache={"prewarm": True}))
REQUIRED = plan(service(uri=OCI))


@pytest.mark.parametrize("planned", [OPTIONAL, REQUIRED])
@pytest.mark.parametrize(("job", "held"), [(None, True), (RUNNING, True), (COMPLETE, False)])
def test_o6_no_accelerator_is_held_while_the_weights_come(planned: Any, job: Any, held: bool) -> None:
    assert holds_back(planned, job=job, serving_replicas=0) is held


def test_o6_a_failed_job_stops_only_a_service_that_needs_its_weights() -> None:
    assert not holds_back(OPTIONAL, job=FAILED, serving_replicas=0)
    assert holds_back(REQUIRED, job=FAILED, serving_replicas=0)


@pytest.mark.parametrize("planned", [OPTIONAL, REQUIRED])
@pytest.mark.parametrize("job", [None, RUNNING, FAILED])
def test_o6_a_backend_that_serves_is_never_stopped(planned: Any, job: Any) -> None:
    assert not holds_back(planned, job=job, serving_replicas=1)


def test_a_service_that_does_not_prewarm_is_never_held() -> None:
    assert not holds_back(plan(), job=RUNNING, serving_replicas=0)


@pytest.mark.parametrize("job", [None, RUNNING, FAILED, COMPLETE])
@pytest.mark.parametrize("serving", [0, 1])
def test_o6_a_model_that_serves_is_replaced_when_the_next_ones_weights_are_there(
    job: Any, serving: int
) -> None:
    deferred = serving > 0 and job is not COMPLETE
    assert defers_rollout(REQUIRED, job=job, serving_replicas=serving) is deferred
    assert not defers_rollout(OPTIONAL, job=job, serving_replicas=serving)
    assert not defers_rollout(plan(), job=job, serving_replicas=serving)
