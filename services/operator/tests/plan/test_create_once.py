"""Objects that are created once, when one is already there."""

from __future__ import annotations

import alpha
import pytest
from noctaya_api import names
from noctaya_api.conditions import StepReason
from noctaya_operator.create_once import judge
from noctaya_operator.hashes import spec_hash
from noctaya_operator.kube.objects import Object, owner_reference
from noctaya_operator.plan import PlanError, ServicePlan
from samples import FROM_ALPHA, IMAGES, OCI, plan, raw_service, rendered, runtime, service

OWNER = raw_service()
CLAIM, JOB, SECRET = "PersistentVolumeClaim/chat-cache", "Job/chat-prewarm", "Secret/chat-demand-auth"
HASH = names.ANNOTATION_CREATE_ONCE_HASH
HASH_50_GI = spec_hash(
    {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Gi"}}},
)
LOCK = {"uid": "uid-of-PersistentVolumeClaim-chat-cache", "resourceVersion": "7"}


def judged(planned: ServicePlan, kind: str, live: Object, *, owner: Object = OWNER) -> Object | None:
    return judge(planned, rendered(planned)[kind], live=live, owner=owner)


def as_created(planned: ServicePlan, kind: str) -> Object:
    """What we would have created, as the API server has it."""
    created = rendered(planned)[kind].object
    created["metadata"] |= {"uid": "u", "resourceVersion": "1", "ownerReferences": [owner_reference(OWNER)]}
    return created


def test_our_own_objects_are_left_alone() -> None:
    planned = plan(service(cache={"prewarm": True}), gateways=2)
    for kind in (CLAIM, JOB, SECRET):
        assert judged(planned, kind, as_created(planned, kind)) is None


def test_the_alphas_claim_is_left_alone() -> None:
    assert judged(plan(), CLAIM, alpha.claim(OWNER, hashed=HASH_50_GI)) is None


def test_o9_another_spelling_of_the_size_is_the_same_claim() -> None:
    planned = plan(service(cache={"size": "51200Mi"}))
    assert judged(planned, CLAIM, alpha.claim(OWNER, hashed=HASH_50_GI)) is None


def test_o6_a_claim_without_a_hash_is_adopted_if_it_fits() -> None:
    patch = judged(plan(), CLAIM, alpha.claim(OWNER, hashed=None))
    assert patch == {"metadata": {**LOCK, "annotations": {HASH: HASH_50_GI}}}


def test_a_claim_that_was_made_larger_by_hand_is_taken_when_the_service_follows() -> None:
    grown = alpha.claim(OWNER, hashed=HASH_50_GI, size="100Gi")
    assert judged(plan(), CLAIM, grown) is None
    followed = judged(plan(service(cache={"size": "102400Mi"})), CLAIM, grown)
    assert followed is not None
    assert set(followed["metadata"]["annotations"]) == {HASH}


@pytest.mark.parametrize(
    ("cache", "told"),
    [
        ({"size": "60Gi"}, "size is 50Gi, wanted is 60Gi"),
        ({"storageClassName": "fast"}, "storage class is standard, wanted is fast"),
        ({"strategy": "SharedPVC"}, "access mode is ReadWriteOnce, wanted is ReadWriteMany"),
    ],
)
@pytest.mark.parametrize("hashed", [HASH_50_GI, None])
def test_l9_a_changed_claim_is_refused(cache: dict[str, str], told: str, hashed: str | None) -> None:
    with pytest.raises(PlanError, match=told) as refused:
        judged(plan(service(cache=cache)), CLAIM, alpha.claim(OWNER, hashed=hashed))
    assert refused.value.reason is StepReason.APPLY_CACHE_PVC
    assert "delete it and with it the weights" in refused.value.message


def test_retaining_takes_the_claim_from_the_service_and_back() -> None:
    keep = plan(service(cache={"retain": True}))
    owned = alpha.claim(OWNER, hashed=HASH_50_GI)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}
    owned["metadata"]["ownerReferences"].insert(0, other)
    freed = judged(keep, CLAIM, owned)
    assert freed == {
        "metadata": {**LOCK, "ownerReferences": [other], "annotations": {names.ANNOTATION_RETAIN: "true"}}
    }

    owned["metadata"]["ownerReferences"] = [other]
    owned["metadata"]["annotations"][names.ANNOTATION_RETAIN] = "true"
    assert judged(keep, CLAIM, owned) is None
    taken = judged(plan(), CLAIM, owned)
    assert taken == {
        "metadata": {
            **LOCK,
            "ownerReferences": [other, owner_reference(OWNER)],
            "annotations": {names.ANNOTATION_RETAIN: None},
        }
    }


def test_o3_a_retained_claim_serves_the_next_service_of_that_name() -> None:
    keep = plan(service(cache={"retain": True}))
    left = as_created(keep, CLAIM)
    del left["metadata"]["ownerReferences"]
    again = {**OWNER, "metadata": {**OWNER["metadata"], "uid": "another"}}
    assert judged(keep, CLAIM, left, owner=again) is None


@pytest.mark.parametrize("kind", [CLAIM, JOB, SECRET])
@pytest.mark.parametrize("whose", ["nobody", "another", "namesake"])
def test_o2_somebody_elses_object_is_refused_by_name(kind: str, whose: str) -> None:
    planned = plan(service(cache={"prewarm": True}), gateways=2)
    live = as_created(planned, kind)
    owners = {
        "nobody": [],
        "another": [owner_reference(raw_service(name="other"))],
        "namesake": [{**owner_reference(OWNER), "uid": "of-a-deleted-namesake"}],
    }
    live["metadata"]["ownerReferences"] = owners[whose]
    with pytest.raises(PlanError, match=kind.replace("/", " team/")) as refused:
        judged(planned, kind, live)
    assert refused.value.reason is StepReason.NAME_CONFLICT


def test_o2_the_message_says_how_to_hand_a_claim_over() -> None:
    live = as_created(plan(), CLAIM)
    live["metadata"]["ownerReferences"] = []
    with pytest.raises(PlanError, match=r"serving\.noctaya\.io/retain=true"):
        judged(plan(), CLAIM, live)


def test_an_object_that_is_going_away_is_waited_for() -> None:
    live = as_created(plan(), CLAIM)
    live["metadata"]["deletionTimestamp"] = "2026-11-30T08:00:00Z"
    with pytest.raises(PlanError, match="being deleted") as refused:
        judged(plan(), CLAIM, live)
    assert refused.value.reason is StepReason.APPLY_CACHE_PVC


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"token": ""},
        {"token": "c2hvcnQ="},
        {"token": "not base64"},
        {"token": 7},
        {"token": "//8="},
    ],
)
def test_l8_a_secret_without_a_usable_token_is_refused(data: object) -> None:
    planned = plan(gateways=2)
    live = {**as_created(planned, SECRET), "data": data}
    with pytest.raises(PlanError, match="chat-demand-auth") as refused:
        judged(planned, SECRET, live)
    assert refused.value.reason is StepReason.DEMAND_AUTHENTICATION


def job_plan(**spec: object) -> ServicePlan:
    return plan(service(cache={"prewarm": True}, **spec))


def taken_over() -> ServicePlan:
    """The plan of a service whose Job the alpha made."""
    return plan(service(cache={"prewarm": True}), precedent=FROM_ALPHA)


def test_o6_images_secrets_and_placement_do_not_invalidate_a_download() -> None:
    before = as_created(job_plan(), JOB)
    given = service(cache={"prewarm": True}, imagePullSecrets=[{"name": "new"}])
    on = runtime(accelerator={"nodeSelector": {"zone": "b"}}, container={"image": "example.com/engine:2"})
    images = type(IMAGES)(gateway="g", aggregate_scaler="a", prewarm="example.com/prewarm:2", oras="o")
    assert judged(plan(given, on=on, images=images), JOB, before) is None


@pytest.mark.parametrize("uri", ["hf://org/model@v2", "hf://org/other", "modelscope://org/model"])
def test_other_weights_need_another_job(uri: str) -> None:
    before = as_created(job_plan(), JOB)
    with pytest.raises(PlanError, match="was made for hf://org/model") as refused:
        judged(job_plan(uri=uri), JOB, before)
    assert refused.value.reason is StepReason.APPLY_PREWARM_JOB
    assert uri in refused.value.message


def test_another_spelling_of_the_source_is_the_same_download() -> None:
    assert judged(job_plan(uri="huggingface://org/model"), JOB, as_created(job_plan(), JOB)) is None


@pytest.mark.parametrize("done", [True, False])
def test_the_alphas_job_is_adopted_when_it_names_the_model(done: bool) -> None:
    patch = judged(taken_over(), JOB, alpha.prewarm_job(OWNER, done=done))
    assert patch is not None
    annotations = patch["metadata"]["annotations"]
    assert annotations[HASH].startswith("data-")
    assert annotations[names.ANNOTATION_MODEL_SOURCE] == "hf://org/model"
    assert "ownerReferences" not in patch["metadata"]


def test_the_alphas_complete_job_counts_where_the_engine_can_fetch_what_is_missing() -> None:
    assert judged(taken_over(), JOB, alpha.prewarm_job(OWNER, model="org/model-2")) is not None


@pytest.mark.parametrize("model", ["org/model-2", "my-org/model", "org/model/sub"])
def test_a_longer_name_is_another_model(model: str) -> None:
    with pytest.raises(PlanError, match="other weights"):
        judged(taken_over(), JOB, alpha.prewarm_job(OWNER, model=model, done=False))


def test_a_guess_never_lets_an_engine_wait_for_weights_nobody_brings() -> None:
    planned = plan(service(uri=OCI))
    with pytest.raises(PlanError, match="other weights"):
        judged(planned, JOB, alpha.prewarm_job(OWNER))
    reference = OCI.removeprefix("oci://")
    assert judged(planned, JOB, alpha.prewarm_job(OWNER, model=reference)) is not None


def test_the_alphas_job_brought_nothing_to_a_directory_of_our_own() -> None:
    with pytest.raises(PlanError, match="other weights"):
        judged(job_plan(), JOB, alpha.prewarm_job(OWNER))
