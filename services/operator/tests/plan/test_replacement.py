"""What is replaced, in which order, and what is not touched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import alpha
import pytest
from noctaya_operator.create_once import judge
from noctaya_operator.download_retry import retry_in
from noctaya_operator.hashes import spec_hash
from noctaya_operator.kube.objects import Object, owner_reference
from noctaya_operator.plan import PlanError, ServicePlan
from noctaya_operator.replacement import Replacement, plan_replacements
from samples import plan, raw_service, rendered, service

OWNER = raw_service()
CLAIM, JOB = "PersistentVolumeClaim/chat-cache", "Job/chat-prewarm"
HASH_50_GI = spec_hash(
    {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Gi"}}},
)
GROWING = frozenset({"standard"})
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def wish(uri: str = "hf://org/model", **cache: Any) -> ServicePlan:
    return plan(service(uri=uri, cache={"prewarm": True, **cache}))


def made(planned: ServicePlan, kind: str, **metadata: Any) -> Object:
    created = rendered(planned)[kind].object
    created["metadata"] |= {
        "uid": "u",
        "resourceVersion": "1",
        "ownerReferences": [owner_reference(OWNER)],
        **metadata,
    }
    return created


def complete(job: Object, at: str = "2026-11-30T08:00:00Z") -> Object:
    return {**job, "status": {"completionTime": at, "conditions": [{"type": "Complete", "status": "True"}]}}


def failed(job: Object, *, tried: float, ago: float) -> Object:
    over = NOW - timedelta(seconds=ago)
    condition = {"type": "Failed", "status": "True", "lastTransitionTime": over.isoformat()}
    started = (over - timedelta(seconds=tried)).isoformat()
    return {**job, "status": {"startTime": started, "conditions": [condition]}}


def replaced(
    planned: ServicePlan,
    *,
    claim: Object | None = None,
    job: Object | None = None,
    busy: bool = False,
    growing: frozenset[str] = frozenset(),
) -> dict[str, Replacement]:
    objects = rendered(planned)
    found = {each.ref: None for each in objects.values()} | {
        planned.names.cache_claim: claim,
        planned.names.prewarm_job: job,
    }
    made_anew = plan_replacements(
        planned, list(objects.values()), found=found, growing=growing, busy=busy, now=NOW
    )
    return {each.ref.resource.kind: each for each in made_anew}


def test_nothing_is_replaced_that_is_as_wanted() -> None:
    planned = wish(replace=True)
    assert replaced(planned, claim=made(planned, CLAIM), job=made(planned, JOB)) == {}
    assert replaced(planned) == {}


@pytest.mark.parametrize("busy", [True, False])
def test_another_model_replaces_the_download_also_while_the_former_serves(busy: bool) -> None:
    former = complete(made(wish(), JOB))
    assert replaced(wish("hf://org/other", replace=True), job=former, busy=busy)["Job"].waits is False


def test_without_the_wish_another_model_is_refused_and_the_way_out_named() -> None:
    former, planned = complete(made(wish(), JOB)), wish("hf://org/other")
    assert replaced(planned, job=former) == {}
    with pytest.raises(PlanError, match=r"cache\.replace"):
        judge(planned, rendered(planned)[JOB], live=former, owner=OWNER)


def test_a_claim_is_replaced_with_its_download_once_nothing_runs() -> None:
    planned = wish(replace=True, storageClassName="fast")
    claim, job = alpha.claim(OWNER, hashed=HASH_50_GI), complete(made(wish(), JOB))
    found = replaced(planned, claim=claim, job=job)
    assert [(kind, each.waits) for kind, each in found.items()] == [
        ("Job", False),
        ("PersistentVolumeClaim", False),
    ]
    waiting = replaced(planned, claim=claim, job=made(planned, JOB), busy=True)
    assert set(waiting) == {"PersistentVolumeClaim"}
    assert waiting["PersistentVolumeClaim"].waits
    assert "once no replica runs: storage class is standard, wanted is fast" in (
        waiting["PersistentVolumeClaim"].note
    )


def test_a_retained_claim_is_never_replaced() -> None:
    planned = wish(replace=True, storageClassName="fast", retain=True)
    claim = alpha.claim(OWNER, hashed=HASH_50_GI)
    assert replaced(planned, claim=claim) == {}
    with pytest.raises(PlanError, match=r"cache\.retain to false"):
        judge(planned, rendered(planned)[CLAIM], live=claim, owner=OWNER)


def test_a_download_older_than_its_claim_filled_another_one() -> None:
    planned = wish()
    claim = made(planned, CLAIM, creationTimestamp="2026-11-30T09:00:00Z")
    assert replaced(planned, claim=claim, job=complete(made(planned, JOB)))["Job"].waits is False
    newer = complete(made(planned, JOB), at="2026-11-30T09:00:00Z")
    assert replaced(planned, claim=claim, job=newer) == {}
    assert replaced(planned, claim=claim, job=made(planned, JOB)) == {}


@pytest.mark.parametrize(
    ("tried", "ago", "left"),
    [(5, 10, 20), (5, 30, 0), (600, 30, 570), (600, 601, 0), (90000, 30, 3570), (90000, 3600, 0)],
)
def test_a_download_that_is_needed_is_tried_again_after_as_long_as_it_tried(
    tried: float, ago: float, left: float
) -> None:
    planned = wish(strategy="SharedPVC")
    job = failed(made(planned, JOB), tried=tried, ago=ago)
    assert retry_in(planned, job, now=NOW) == left
    assert set(replaced(planned, job=job)) == (set() if left else {"Job"})


def test_a_failure_that_does_not_say_when_is_not_tried_again_at_once() -> None:
    planned = wish(strategy="SharedPVC")
    job = {**made(planned, JOB), "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    assert retry_in(planned, job, now=NOW) == 30
    assert replaced(planned, job=job) == {}


def test_a_head_start_that_failed_is_not_taken_again() -> None:
    planned = wish()
    assert replaced(planned, job=failed(made(planned, JOB), tried=5, ago=7200)) == {}


def test_a_download_that_failed_makes_way_for_another_model_without_the_wish() -> None:
    former = failed(made(wish(), JOB), tried=600, ago=1)
    assert replaced(wish("hf://org/other"), job=former)["Job"].waits is False


def test_what_is_going_away_is_waited_for() -> None:
    planned = wish(replace=True)
    going = {"deletionTimestamp": "2026-11-30T08:00:00Z"}
    found = replaced(planned, claim=made(planned, CLAIM, **going), job=made(planned, JOB, **going))
    assert [each.waits for each in found.values()] == [True, True]
    assert "being deleted" in found["PersistentVolumeClaim"].note


def test_a_claim_grows_where_its_class_lets_it() -> None:
    planned = wish(size="60Gi", replace=True)
    live = {**alpha.claim(OWNER, hashed=HASH_50_GI), "status": {"phase": "Bound"}}
    assert replaced(planned, claim=live, growing=GROWING) == {}
    patch = judge(planned, rendered(planned)[CLAIM], live=live, owner=OWNER, growing=GROWING)
    assert patch is not None
    assert patch["spec"] == {"resources": {"requests": {"storage": "60Gi"}}}
    assert set(patch["metadata"]) == {"uid", "resourceVersion", "annotations"}


@pytest.mark.parametrize(
    ("size", "phase", "growing", "why"),
    [
        ("40Gi", "Bound", GROWING, "no claim shrinks"),
        ("60Gi", "Bound", frozenset(), "does not allow expansion"),
        ("60Gi", "Pending", GROWING, "before it is bound"),
    ],
)
def test_a_claim_that_can_not_grow_is_refused_or_replaced(
    size: str, phase: str, growing: frozenset[str], why: str
) -> None:
    live = {**alpha.claim(OWNER, hashed=HASH_50_GI), "status": {"phase": phase}}
    planned = wish(size=size)
    with pytest.raises(PlanError, match=why):
        judge(planned, rendered(planned)[CLAIM], live=live, owner=OWNER, growing=growing)
    assert "PersistentVolumeClaim" in replaced(wish(size=size, replace=True), claim=live, growing=growing)
