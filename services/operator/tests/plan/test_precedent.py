"""What of the cluster binds a plan: a resolved tag, the way an earlier Job went, where its weights are."""

from __future__ import annotations

import json

import alpha
import pytest
from noctaya_api.v1alpha1.llmservice_status import LLMServiceStatus, ModelStatus, PrewarmState, PrewarmStatus
from noctaya_operator.kube.objects import Object
from noctaya_operator.precedent import NONE, Precedent, find_precedent
from samples import DIGEST, objects, plan, raw_service, service

OWNER = raw_service()
TAGGED = service(
    uri="oci://registry.example.com/tiny:v1", model={"source": {"allowTags": True}}, cache={"size": "1Gi"}
)
HUB = service(cache={"prewarm": True})
NO_STATUS = LLMServiceStatus()


def our_job(given: object, condition: str = "Complete") -> Object:
    job = objects(plan(given))["Job/chat-prewarm"]  # type: ignore[arg-type]
    job["status"] = {
        "startTime": "2026-11-30T08:00:00Z",
        "conditions": [{"type": condition, "status": "True"}],
    }
    return job


def ended(said: object, *, node: str = "node-1", at: str = "2026-11-30T08:05:00Z") -> Object:
    state = {"terminated": {"exitCode": 0, "message": json.dumps(said), "finishedAt": at}}
    return {
        "metadata": {"name": "chat-prewarm-x"},
        "spec": {"nodeName": node},
        "status": {"phase": "Succeeded", "containerStatuses": [{"name": "prewarm", "state": state}]},
    }


def with_digest(uri: str, digest: str) -> LLMServiceStatus:
    return LLMServiceStatus(model=ModelStatus(uri=uri, digest=digest))


def test_without_a_job_and_a_status_nothing_binds() -> None:
    assert find_precedent(HUB, NO_STATUS, job=None, pods=[]) == NONE


def test_the_digest_that_the_download_found_binds_and_the_status_keeps_it() -> None:
    job, pods = our_job(TAGGED), [ended({"digest": f"sha256:{DIGEST}"})]
    assert find_precedent(TAGGED, NO_STATUS, job=job, pods=pods).digest == DIGEST
    uri = "oci://registry.example.com/tiny:v1"
    kept = with_digest(uri, f"sha256:{DIGEST}")
    other = [ended({"digest": "sha256:" + "f" * 64})]
    assert find_precedent(TAGGED, kept, job=job, pods=other).digest == DIGEST
    assert find_precedent(TAGGED, kept, job=None, pods=[]).digest == DIGEST


def test_the_digest_of_another_uri_or_of_a_job_that_runs_does_not_bind() -> None:
    kept = with_digest("oci://registry.example.com/tiny:v0", f"sha256:{DIGEST}")
    assert find_precedent(TAGGED, kept, job=None, pods=[]).digest == ""
    pods = [ended({"digest": f"sha256:{DIGEST}"})]
    assert find_precedent(TAGGED, NO_STATUS, job=our_job(TAGGED, "Suspended"), pods=pods).digest == ""
    other = service(uri="oci://registry.example.com/tiny:v2", model={"source": {"allowTags": True}})
    assert find_precedent(TAGGED, NO_STATUS, job=our_job(other), pods=pods).digest == ""


@pytest.mark.parametrize("digest", ["", "latest", "sha256:../..", 7, None, ["x"]])
def test_what_a_pod_says_is_a_digest_or_nothing(digest: object) -> None:
    found = find_precedent(TAGGED, NO_STATUS, job=our_job(TAGGED), pods=[ended({"digest": digest})])
    assert found.digest == ""


def test_o6_the_alphas_job_goes_on_filling_the_hubs_cache() -> None:
    assert find_precedent(HUB, NO_STATUS, job=alpha.prewarm_job(OWNER), pods=[]).hub_cache
    assert not find_precedent(HUB, NO_STATUS, job=our_job(HUB), pods=[]).hub_cache


def test_a_job_of_an_earlier_version_counts_only_for_the_model_it_names() -> None:
    earlier = alpha.prewarm_job(OWNER)
    annotations = earlier["metadata"]["annotations"]
    annotations["serving.noctaya.io/create-once-hash"] = "data-1"
    annotations["serving.noctaya.io/model-source"] = "hf://org/model"
    assert find_precedent(HUB, NO_STATUS, job=earlier, pods=[]).hub_cache
    annotations["serving.noctaya.io/model-source"] = "hf://org/other"
    assert not find_precedent(HUB, NO_STATUS, job=earlier, pods=[]).hub_cache


def test_a_failure_counts_for_the_model_it_was_of() -> None:
    assert find_precedent(HUB, NO_STATUS, job=our_job(HUB, "Failed"), pods=[]).failed
    other = service(uri="hf://org/other", cache={"prewarm": True})
    assert not find_precedent(HUB, NO_STATUS, job=our_job(other, "Failed"), pods=[]).failed


def test_a_job_that_is_going_away_binds_nothing() -> None:
    job = alpha.prewarm_job(OWNER)
    job["metadata"]["deletionTimestamp"] = "2026-11-30T08:00:00Z"
    assert find_precedent(HUB, NO_STATUS, job=job, pods=[ended({})]) == NONE


def test_the_node_is_the_pods_and_remembered_as_long_as_the_job_is_the_same() -> None:
    job = our_job(HUB)
    assert find_precedent(HUB, NO_STATUS, job=job, pods=[ended({})]).node == "node-1"

    def known(started: str) -> LLMServiceStatus:
        status = PrewarmStatus(state=PrewarmState.COMPLETE, started_at=started, node="node-2")
        return LLMServiceStatus(prewarm=status)

    assert find_precedent(HUB, known("2026-11-30T08:00:00Z"), job=job, pods=[]).node == "node-2"
    assert find_precedent(HUB, known("2026-11-30T07:00:00Z"), job=job, pods=[]).node == ""


def test_a_service_without_a_source_has_no_precedent() -> None:
    catalog = raw_service()
    catalog["spec"]["model"] = {"catalogRef": "qwen"}
    given = type(HUB).model_validate(catalog)
    assert find_precedent(given, NO_STATUS, job=our_job(HUB), pods=[]) == Precedent()
