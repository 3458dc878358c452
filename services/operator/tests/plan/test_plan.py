"""What is decided, what is refused and in which order, what is left over."""

from __future__ import annotations

import dataclasses

import pytest
from noctaya_api.conditions import StepReason
from noctaya_api.v1alpha1 import LLMService
from noctaya_operator import accelerators
from noctaya_operator.defaults import Defaults, Images
from noctaya_operator.plan import PlanError, plan_service
from samples import IMAGES, OCI, plan, raw_service, runtime, service


def test_s7_a_missing_runtime_is_refused_first() -> None:
    with pytest.raises(PlanError, match="'engine' does not exist") as refused:
        plan_service(service(uri="s3://nope"), runtimes=[], defaults=Defaults())
    assert refused.value.reason is StepReason.RUNTIME_RESOLUTION


def test_s3_runtimes_that_tie_are_refused() -> None:
    given = service(runtime={"name": "", "selector": {"vendor": ["nvidia"]}})
    with pytest.raises(PlanError, match=r"runtime\.name") as refused:
        plan_service(given, runtimes=[runtime(name="a"), runtime(name="b")], defaults=Defaults())
    assert refused.value.reason is StepReason.RUNTIME_RESOLUTION


def test_a_vendor_without_an_adapter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerators, "HOST_MOUNTS", {})
    with pytest.raises(PlanError, match="'nvidia'") as refused:
        plan()
    assert refused.value.reason is StepReason.UNSUPPORTED_VENDOR


@pytest.mark.parametrize("uri", ["gs://bucket/model", "org/model", "oci://r.io/a:latest"])
def test_c4_a_bad_model_uri_is_refused(uri: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan(service(uri=uri))
    assert refused.value.reason is StepReason.MODEL_RESOLUTION


def test_c4_a_catalog_reference_is_reserved() -> None:
    raw = raw_service()
    raw["spec"]["model"] = {"catalogRef": "tiny"}
    with pytest.raises(PlanError, match="catalogRef") as refused:
        plan(LLMService.model_validate(raw))
    assert refused.value.reason is StepReason.MODEL_RESOLUTION


def test_k4_the_kv_cache_metric_is_reserved() -> None:
    with pytest.raises(PlanError, match="kvCacheUtil") as refused:
        plan(service(scaling={"metric": "kvCacheUtil"}))
    assert refused.value.reason is StepReason.SCALED_OBJECT


def test_r12_a_fraction_is_reserved() -> None:
    with pytest.raises(PlanError, match="fraction") as refused:
        plan(service(resources={"fraction": {"cores": 50}}))
    assert refused.value.reason is StepReason.RENDER


@pytest.mark.parametrize("scheduler", [{"queue": "q"}, {"name": "other", "queue": "q"}])
def test_r13_a_queue_needs_volcano(scheduler: dict[str, str]) -> None:
    with pytest.raises(PlanError, match="volcano") as refused:
        plan(on=runtime(accelerator={"scheduler": scheduler}))
    assert refused.value.reason is StepReason.RENDER


@pytest.mark.parametrize(
    ("blank", "reason", "gateways", "uri"),
    [
        ("gateway", StepReason.GATEWAY_CONFIG, 1, "hf://org/model"),
        ("aggregate_scaler", StepReason.GATEWAY_CONFIG, 2, "hf://org/model"),
        ("prewarm", StepReason.PREWARM, 1, OCI),
        ("oras", StepReason.PREWARM, 1, OCI),
    ],
)
def test_r15_a_blank_image_is_refused_where_it_is_needed(
    blank: str, reason: StepReason, gateways: int, uri: str
) -> None:
    images: Images = dataclasses.replace(IMAGES, **{blank: " "})
    with pytest.raises(PlanError, match="blank") as refused:
        plan(service(uri=uri), gateways=gateways, images=images)
    assert refused.value.reason is reason


def test_r15_an_image_nobody_uses_may_be_blank() -> None:
    images = Images(gateway="g", aggregate_scaler="", prewarm="", oras="")
    assert plan(images=images).gateways == 1
    assert plan(service(cache={"prewarm": True}), images=dataclasses.replace(images, prewarm="p")).prewarm


def test_r15_no_gateways_are_one() -> None:
    assert plan(gateways=0).gateways == 1


@pytest.mark.parametrize("replicas", [-1, 2**31])
def test_r15_an_impossible_number_of_gateways_is_refused(replicas: int) -> None:
    with pytest.raises(ValueError, match=str(replicas)):
        Defaults(gateway_replicas=replicas)


def test_the_first_fault_in_the_order_of_the_steps_is_told() -> None:
    raw = {
        "resources": {"fraction": {"cores": 1}},
        "scaling": {"metric": "kvCacheUtil"},
        "cache": {"size": "0"},
    }
    order = []
    for repaired in ("scaling", "resources", "cache"):
        with pytest.raises(PlanError) as refused:
            plan(service(**raw))
        order.append(refused.value.reason)
        del raw[repaired]
    assert order == [StepReason.SCALED_OBJECT, StepReason.RENDER, StepReason.CACHE]
    assert plan(service(**raw)).notes == ()


def left_over(gateways: int, **spec: object) -> list[tuple[str, StepReason]]:
    planned = plan(service(**spec), gateways=gateways)
    return [(str(each.ref), each.step) for each in planned.obsolete()]


def test_l4_what_several_gateways_needed_goes_with_them() -> None:
    assert left_over(1, cache={"prewarm": True}) == [
        ("PodDisruptionBudget team/chat-gateway", StepReason.DELETE_GATEWAY_PDB),
        ("Deployment team/chat-scaler", StepReason.DELETE_GATEWAY_SCALER),
        ("Secret team/chat-demand-auth", StepReason.DELETE_DEMAND_AUTHENTICATION),
    ]
    assert left_over(2, cache={"prewarm": True}) == []


def test_a_job_goes_when_prewarming_is_switched_off_but_the_claim_stays() -> None:
    assert left_over(2, cache={"strategy": "None"}) == [
        ("Job team/chat-prewarm", StepReason.DELETE_PREWARM_JOB)
    ]


@pytest.mark.parametrize(
    ("strategy", "maximum", "noted"),
    [("NodeLocalPVC", 2, True), ("NodeLocalPVC", 1, False), ("SharedPVC", 2, False), ("HostPath", 2, False)],
)
def test_o11_replicas_that_must_share_a_node_are_noted(strategy: str, maximum: int, noted: bool) -> None:
    planned = plan(service(scaling={"max": maximum}, cache={"strategy": strategy}))
    assert planned.kept_on_one_node is noted
    assert ["chat-cache" in note for note in planned.notes] == [True] * noted


def test_o2_names_of_two_services_can_collide_and_are_listed_to_find_out() -> None:
    one = plan(service(name="chat")).owned_names()
    other = plan(service(name="chat-gateway")).owned_names()
    shared = {str(ref) for ref in one} & {str(ref) for ref in other}
    assert shared == {"Deployment team/chat-gateway"}
