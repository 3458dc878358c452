"""What the agent says of a download, and what the status makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.v1alpha1.llmservice_status import PrewarmState, PrewarmStatus
from noctaya_operator.kube.objects import Object
from noctaya_operator.prewarm_progress import prewarm_status
from noctaya_operator.prewarm_report import Report, last_report, parse_report

SAID = {
    "state": "Downloading",
    "bytesDone": 10,
    "bytesTotal": 40,
    "bytesPerSecond": 5,
    "currentFile": "a.safetensors",
    "etaSeconds": 6,
    "attempt": 2,
}
STARTED = "2026-11-30T08:00:00Z"


def job(condition: str = "", **status: Any) -> Object:
    entry = {"type": condition, "status": "True", "message": "BackoffLimitExceeded"}
    conditions = [entry] if condition else []
    return {
        "metadata": {"name": "chat-prewarm"},
        "status": {"startTime": STARTED, "conditions": conditions, **status},
    }


def container(name: str, said: object, *, code: int = 0, at: str = "", last: bool = False) -> Object:
    text = said if isinstance(said, str) else json.dumps(said)
    ended = {"terminated": {"exitCode": code, "message": text, "finishedAt": at}}
    return {"name": name, "state": {} if last else ended, "lastState": ended if last else {}}


def pod(
    *containers: Object, init: tuple[Object, ...] = (), phase: str = "Running", node: str = "n1"
) -> Object:
    return {
        "metadata": {"name": "chat-prewarm-x"},
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "containerStatuses": list(containers),
            "initContainerStatuses": list(init),
        },
    }


@given(
    st.one_of(
        st.text(),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
            lambda inner: (
                st.lists(inner) | st.dictionaries(st.sampled_from([*SAID, "code", "digest"]), inner)
            ),
        ).map(json.dumps),
        st.none(),
        st.integers(),
    )
)
def test_nothing_the_agent_says_breaks_a_pass(said: object) -> None:
    report = parse_report(said)
    if report is not None:
        # It must also fit the status, which refuses what the schema does not allow.
        status = prewarm_status(job(), [], told=report)
        assert PrewarmStatus.model_validate(status.manifest()) == status


@pytest.mark.parametrize("said", ["", "plain words", "[1]", '"text"', None, 7, "{" * 100_000])
def test_what_is_not_a_json_object_is_no_report(said: object) -> None:
    assert parse_report(said) is None


def test_m3_texts_are_cut() -> None:
    report = parse_report(json.dumps({"message": "x" * 10_000, "code": 16}))
    assert report is not None
    assert (len(report.message), report.failure) == (512, True)


def test_the_newest_of_what_containers_left_counts() -> None:
    older = container("prewarm", {"bytesDone": 1}, code=16, at="2026-11-30T08:01:00Z", last=True)
    newer = container("prewarm", {"bytesDone": 2}, at="2026-11-30T08:02:00Z")
    assert last_report([pod(newer), pod(older)]) == Report(bytes_done=2)
    assert last_report([pod()]) is None


def test_m5_a_failed_pull_is_told_in_the_registry_clients_words() -> None:
    said = "Copying 1/3\nError response from registry: unauthorized: access denied\n"
    report = last_report([pod(init=(container("pull-oci-model", said, code=1),))])
    assert report is not None
    assert report.message == "pull-oci-model: Error response from registry: unauthorized: access denied"
    assert last_report([pod(init=(container("pull-oci-model", "Copied", code=0),))]) is None
    why = "the credential helper ecr-login is not supported"
    helper = {"message": why, "code": 2}
    told = last_report([pod(init=(container("registry-auth", helper, code=2),))])
    assert told == Report(message=why, code=2)


def test_m6_what_a_running_agent_answers_is_the_progress() -> None:
    running = {"name": "prewarm", "state": {"running": {}}, "ready": False}
    status = prewarm_status(job(), [pod(running)], told=parse_report(json.dumps(SAID)))
    assert status == PrewarmStatus(
        state=PrewarmState.RUNNING,
        started_at=STARTED,
        bytes_done=10,
        bytes_total=40,
        bytes_per_second=5,
        current_file="a.safetensors",
        eta_seconds=6,
        attempt=2,
        node="n1",
    )


def test_the_last_failure_shows_while_the_next_attempt_runs_and_is_forgotten_at_the_end() -> None:
    failure = {"bytesDone": 5, "message": "the hub answered 503", "code": 16, "reason": "NetworkFault"}
    between = container("prewarm", failure, code=16, at="2026-11-30T08:01:00Z", last=True)
    status = prewarm_status(job(), [pod(between)])
    assert (status.message, status.code, status.reason) == ("the hub answered 503", 16, "NetworkFault")
    done = container("prewarm", {"bytesDone": 40, "revision": "abc"}, at="2026-11-30T08:03:00Z")
    complete = job("Complete", completionTime="2026-11-30T08:03:00Z")
    status = prewarm_status(complete, [pod(done, phase="Succeeded")], before=status)
    assert (status.state, status.message, status.code) == (PrewarmState.COMPLETE, None, None)
    assert (status.bytes_done, status.revision) == (40, "abc")


def test_a_failed_job_is_explained_by_what_its_pod_said_before_it_went() -> None:
    failure = {"message": "org/model needs a token", "code": 10, "reason": "NotAuthorised"}
    before = prewarm_status(job(), [pod(container("prewarm", failure, code=10, last=True))])
    status = prewarm_status(job("Failed"), [], before=before)
    assert (status.state, status.message, status.code) == (PrewarmState.FAILED, "org/model needs a token", 10)
    assert status.node == "n1"


def test_a_job_that_says_nothing_is_explained_by_kubernetes() -> None:
    assert prewarm_status(job("Failed"), []).message == "BackoffLimitExceeded"


def test_what_was_known_of_another_job_is_forgotten() -> None:
    before = PrewarmStatus(
        state=PrewarmState.FAILED, started_at="2026-11-29T08:00:00Z", code=10, message="old", bytes_done=7
    )
    status = prewarm_status(job(), [], before=before)
    assert status == PrewarmStatus(state=PrewarmState.PENDING, started_at=STARTED)


def test_why_a_pod_could_not_start_is_not_taken_for_the_agents_words() -> None:
    before = PrewarmStatus(state=PrewarmState.PENDING, started_at=STARTED, message="no node fits")
    assert prewarm_status(job(), [], before=before).message is None


def test_speed_and_file_are_of_now_or_not_told() -> None:
    before = PrewarmStatus(
        state=PrewarmState.RUNNING, started_at=STARTED, bytes_done=3, bytes_per_second=9, current_file="a"
    )
    status = prewarm_status(job(), [], before=before)
    assert (status.bytes_done, status.bytes_per_second, status.current_file) == (3, None, None)


def test_an_artifact_that_is_pulled_is_a_download_that_runs() -> None:
    pulling = {"name": "pull-oci-model", "state": {"running": {"startedAt": STARTED}}}
    main = {"name": "prewarm", "state": {"waiting": {"reason": "PodInitializing"}}, "ready": False}
    assert prewarm_status(job(), [pod(main, init=(pulling,), phase="Pending")]).state is PrewarmState.RUNNING
    waiting = {"name": "pull-oci-model", "state": {"waiting": {"reason": "PodInitializing"}}}
    assert prewarm_status(job(), [pod(main, init=(waiting,), phase="Pending")]).state is PrewarmState.PENDING
