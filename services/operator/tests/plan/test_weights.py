"""Where weights live: strategies, claims, directories of the node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.conditions import StepReason
from noctaya_api.model_source import FileFilter, cache_dir, parse_model_source
from noctaya_operator.cache_volume import host_path
from noctaya_operator.plan import PlanError
from noctaya_operator.precedent import Precedent
from samples import (
    DIGEST,
    FROM_ALPHA,
    OCI,
    backend,
    engine,
    env_of,
    objects,
    plan,
    pod_of,
    runtime,
    service,
)

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
    ("uri", "strategy", "required", "read_only"),
    [
        ("hf://org/model", "NodeLocalPVC", False, False),
        ("hf://org/model", "HostPath", False, False),
        ("hf://org/model", "SharedPVC", True, True),
        ("s3://bucket/model", "NodeLocalPVC", True, True),
        (OCI, "NodeLocalPVC", True, True),
        (OCI, "HostPath", True, True),
        (OCI, "SharedPVC", True, True),
    ],
)
def test_weights_are_required_where_the_engine_can_not_bring_them(
    uri: str, strategy: str, required: bool, read_only: bool
) -> None:
    planned = plan(service(uri=uri, cache={"strategy": strategy, "prewarm": True}))
    assert planned.prewarm is not None
    assert planned.cache is not None
    assert planned.prewarm.required is required
    assert planned.prewarm.engine_reads
    assert planned.cache.read_only is read_only


@pytest.mark.parametrize("uri", [OCI, "s3://bucket/model"])
def test_artifacts_and_buckets_are_always_brought_ahead(uri: str) -> None:
    assert plan(service(uri=uri)).prewarm is not None
    with pytest.raises(PlanError, match=r"NodeLocalPVC, SharedPVC or HostPath"):
        plan(service(uri=uri, cache={"strategy": "None"}))


def test_a_prewarmed_model_is_a_plain_directory_named_after_what_it_is() -> None:
    given = service(
        uri="hf://org/model@v2", cache={"prewarm": True}, model={"source": {"files": {"include": ["*.json"]}}}
    )
    planned = plan(given)
    assert planned.prewarm is not None
    expected = cache_dir(parse_model_source("hf://org/model@v2"), FileFilter(include=("*.json",)))
    assert planned.prewarm.target == expected
    assert planned.prewarm.marker == f"{expected}/.noctaya-ready"
    assert planned.serving.args[0] == expected


def test_o6_after_a_failed_download_the_engine_fetches_for_itself_if_it_can() -> None:
    failed = Precedent(failed=True)
    planned = plan(service(cache={"prewarm": True}), precedent=failed)
    assert planned.prewarm is not None
    assert planned.prewarm.target.startswith("/cache/models/")
    assert planned.serving.args[0] == "org/model"
    assert "HF_HUB_OFFLINE" not in env_of(engine(planned))
    shared = plan(service(cache={"prewarm": True, "strategy": "SharedPVC"}), precedent=failed)
    assert shared.serving.args[0].startswith("/cache/models/")


MODELSCOPE_TOKEN: dict[str, object] = {
    "uri": "modelscope://org/model",
    "model": {"source": {"secretRef": {"name": "hub"}}},
}


def test_m3_a_token_of_modelscope_needs_a_download_ahead() -> None:
    with pytest.raises(PlanError, match=r"set cache\.prewarm") as refused:
        plan(service(**MODELSCOPE_TOKEN))
    assert refused.value.reason is StepReason.MODEL_RESOLUTION
    planned = plan(service(**MODELSCOPE_TOKEN, cache={"prewarm": True}), precedent=Precedent(failed=True))
    assert planned.serving.args[0].startswith("/cache/models/")


def test_a_tag_is_a_placeholder_until_it_is_resolved() -> None:
    given = service(uri=OCI.partition("@")[0] + ":v1", model={"source": {"allowTags": True}})
    unresolved, resolved = plan(given), plan(given, precedent=Precedent(digest=DIGEST))
    assert unresolved.prewarm is not None
    assert resolved.prewarm is not None
    assert unresolved.prewarm.target == "/cache/oci/sha256-{digest}"
    assert resolved.prewarm.target == f"/cache/oci/sha256-{DIGEST}"
    assert resolved.source.reference == OCI.removeprefix("oci://")
    assert resolved.serving.args[0] == resolved.prewarm.target
    # It stays the same download.
    jobs = [objects(each)["Job/chat-prewarm"]["metadata"] for each in (unresolved, resolved)]
    assert jobs[0] == jobs[1]


def test_a_shared_claim_is_mounted_and_not_made() -> None:
    planned = plan(service(cache={"strategy": "SharedPVC", "claimName": "models", "prewarm": True}))
    assert planned.cache is not None
    assert (planned.cache.claim, planned.cache.claim_name, planned.cache.shared) == (None, "models", True)
    found = objects(planned)
    assert not [name for name in found if name.startswith("PersistentVolumeClaim/")]
    for deployment in ("Deployment/chat", "Job/chat-prewarm"):
        volumes = {each["name"]: each for each in pod_of(found[deployment])["volumes"]}
        assert volumes["model-cache"]["persistentVolumeClaim"] == {"claimName": "models"}


def test_o11_weights_in_a_directory_of_a_node_are_read_on_that_node() -> None:
    precedent = Precedent(node="node-7")
    planned = plan(service(uri=OCI, cache={"strategy": "HostPath"}, scaling={"max": 2}), precedent=precedent)
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}]
    assert pod_of(backend(planned))["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    assert any("node-7" in note for note in planned.notes)
    elsewhere = plan(service(uri=OCI, cache={"strategy": "SharedPVC"}), precedent=precedent)
    assert "affinity" not in pod_of(backend(elsewhere))


def test_files_without_a_download_ahead_are_told_to_be_of_no_use() -> None:
    given = service(model={"source": {"files": {"include": ["*.json"]}}})
    assert any("cache.prewarm" in note for note in plan(given).notes)


def test_o6_the_alphas_download_goes_on_following_the_runtime_to_another_directory() -> None:
    env = [{"name": "HF_HOME", "value": "/cache/{{ .Service.Name }}/"}]
    planned = plan(service(cache={"prewarm": True}), on=runtime(container={"env": env}), precedent=FROM_ALPHA)
    assert planned.prewarm is not None
    assert planned.prewarm.target == "/cache/chat"
    assert planned.prewarm.marker == "/cache/.noctaya-ready"
    assert planned.serving.args[0] == "org/model"


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
def test_the_alphas_download_is_refused_where_the_engine_would_not_look(entry: dict[str, object]) -> None:
    on = runtime(container={"env": [{"name": "HF_HOME", **entry}]})
    with pytest.raises(PlanError, match="HF_HOME") as refused:
        plan(service(cache={"prewarm": True}), on=on, precedent=FROM_ALPHA)
    assert refused.value.reason is StepReason.PREWARM
    assert plan(service(cache={"prewarm": True}), on=on).prewarm is not None
