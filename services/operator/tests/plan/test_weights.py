"""Where weights live: strategies, claims, directories of the node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.conditions import StepReason
from noctaya_operator.plan import PlanError
from noctaya_operator.weights import host_path
from samples import OCI, plan, runtime, service

LABEL = st.from_regex(r"[a-z]([-a-z0-9]{0,4}[a-z0-9])?", fullmatch=True)
ROOT = "/var/lib/noctaya/cache"


@given(st.tuples(LABEL, LABEL), st.tuples(LABEL, LABEL))
def test_o11_no_two_services_share_a_directory(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (host_path(*one) == host_path(*other)) == (one == other)


@given(LABEL, LABEL)
def test_o11_a_directory_of_the_alpha_is_kept_only_where_it_is_unambiguous(namespace: str, name: str) -> None:
    alpha = f"{ROOT}/{namespace}-{name}"
    unambiguous = "-" not in namespace + name
    assert (host_path(namespace, name) == alpha) is unambiguous


def test_o11_the_pair_the_alpha_confused_is_told_apart() -> None:
    assert host_path("a-b", "c") == f"{ROOT}/a-b_c"
    assert host_path("a", "b-c") == f"{ROOT}/a_b-c"


def test_h1_the_default_is_a_claim_of_50_gi() -> None:
    planned = plan()
    assert planned.cache is not None
    assert planned.cache.claim is not None
    assert (planned.cache.claim.access_mode, planned.cache.claim.size) == ("ReadWriteOnce", "50Gi")
    assert planned.cache.one_node
    assert not planned.cache.read_only


@pytest.mark.parametrize("size", ["0", "0Gi", "0.0"])
def test_a_cache_without_size_is_refused(size: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan(service(cache={"size": size}))
    assert refused.value.reason is StepReason.CACHE


def test_h7_an_oci_model_needs_a_cache() -> None:
    with pytest.raises(PlanError, match=r"NodeLocalPVC, SharedPVC or HostPath") as refused:
        plan(service(uri=OCI, cache={"strategy": "None"}))
    assert refused.value.reason is StepReason.PREWARM


def test_h8_a_baked_image_is_reserved() -> None:
    with pytest.raises(PlanError, match="BakedImage") as refused:
        plan(service(cache={"strategy": "BakedImage"}))
    assert refused.value.reason is StepReason.RENDER


@pytest.mark.parametrize(
    ("uri", "cache"),
    [
        ("hf://org/model", {}),
        ("hf://org/model", {"strategy": "None", "prewarm": True}),
        ("pvc://models/tiny", {"prewarm": True}),
        ("pvc://models/tiny", {"strategy": "SharedPVC", "prewarm": True}),
    ],
)
def test_h9_no_prewarming_unless_asked_for_and_possible(uri: str, cache: dict[str, object]) -> None:
    planned = plan(service(uri=uri, cache=cache))
    assert planned.prewarm is None
    # What nobody fills must stay writable.
    assert planned.cache is None or not planned.cache.read_only


@pytest.mark.parametrize(
    ("uri", "strategy", "required"),
    [
        ("hf://org/model", "NodeLocalPVC", False),
        ("hf://org/model", "HostPath", False),
        ("hf://org/model", "SharedPVC", True),
        (OCI, "NodeLocalPVC", True),
        (OCI, "HostPath", True),
        (OCI, "SharedPVC", True),
    ],
)
def test_weights_are_required_first_where_the_engine_can_not_bring_them(
    uri: str, strategy: str, required: bool
) -> None:
    planned = plan(service(uri=uri, cache={"strategy": strategy, "prewarm": True}))
    assert planned.prewarm is not None
    assert planned.cache is not None
    assert planned.prewarm.required is required
    assert planned.cache.read_only is required


def test_prewarming_follows_the_runtime_to_another_directory_of_the_cache() -> None:
    env = [{"name": "HF_HOME", "value": "/cache/{{ .Service.Name }}/"}]
    planned = plan(service(cache={"prewarm": True}), on=runtime(container={"env": env}))
    assert planned.prewarm is not None
    assert planned.prewarm.target == "/cache/chat"


@pytest.mark.parametrize(
    "entry",
    [
        {"value": "/data/hf"},
        {"value": "/cache/../data"},
        {"value": "/cache"},
        {"value": ""},
        {"valueFrom": {"configMapKeyRef": {"name": "hub", "key": "home"}}},
    ],
)
def test_prewarming_is_refused_where_the_engine_would_not_look(entry: dict[str, object]) -> None:
    on = runtime(container={"env": [{"name": "HF_HOME", **entry}]})
    with pytest.raises(PlanError, match="HF_HOME") as refused:
        plan(service(cache={"prewarm": True}), on=on)
    assert refused.value.reason is StepReason.PREWARM
    assert plan(service(), on=on).prewarm is None
