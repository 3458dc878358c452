"""When a service is kept at no replicas for its weights."""

from __future__ import annotations

from typing import Any

import pytest
from noctaya_operator.prewarm_gate import defers_rollout, holds_back
from noctaya_operator.prewarm_state import JobState, failure_message, failure_time, job_state
from samples import FROM_ALPHA, OCI, backend, plan, service

COMPLETE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {
    "status": {
        "conditions": [
            {"type": "FailureTarget", "status": "True"},
            {
                "type": "Failed",
                "status": "True",
                "reason": "BackoffLimitExceeded",
                "message": "four times",
                "lastTransitionTime": "2026-11-30T08:00:00Z",
            },
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
    assert failure_time(FAILED) == "2026-11-30T08:00:00Z"
    assert failure_time(RUNNING) == ""


OPTIONAL = plan(service(cache={"prewarm": True}))
TAKEN_OVER = plan(service(cache={"prewarm": True}), precedent=FROM_ALPHA)
TAGGED = plan(service(uri=OCI.partition("@")[0] + ":v1", model={"source": {"allowTags": True}}))
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
    for planned in (REQUIRED, OPTIONAL):
        assert defers_rollout(planned, job=job, serving_replicas=serving) is deferred
    for planned in (TAKEN_OVER, plan()):
        assert not defers_rollout(planned, job=job, serving_replicas=serving)


@pytest.mark.parametrize("job", [None, RUNNING, FAILED])
def test_o6_replicas_that_read_these_weights_already_need_no_patience(job: Any) -> None:
    same, other = backend(OPTIONAL), backend(plan(service(uri="hf://org/other", cache={"prewarm": True})))
    assert not defers_rollout(OPTIONAL, job=job, serving_replicas=1, backend=same)
    assert defers_rollout(OPTIONAL, job=job, serving_replicas=1, backend=other)


def test_a_tag_that_nobody_resolved_keeps_the_service_at_zero() -> None:
    assert holds_back(TAGGED, job=COMPLETE, serving_replicas=0)
    assert defers_rollout(TAGGED, job=COMPLETE, serving_replicas=1)


@pytest.mark.parametrize("done", [COMPLETE, FAILED])
def test_a_job_that_is_going_away_is_none(done: Any) -> None:
    going = {**done, "metadata": {"name": "x", "deletionTimestamp": "2026-11-30T08:00:00Z"}}
    assert holds_back(OPTIONAL, job=going, serving_replicas=0)
    assert defers_rollout(OPTIONAL, job=going, serving_replicas=1)
