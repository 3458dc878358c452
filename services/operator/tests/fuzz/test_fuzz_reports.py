"""O1, M6: what Pods and agents say is read, never trusted, and can always be written to a status."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_operator import pruning
from noctaya_operator.defaults import Defaults
from noctaya_operator.plan import plan_service
from noctaya_operator.plan_error import PlanError
from noctaya_operator.precedent import NONE
from noctaya_operator.prewarm_report import last_report, parse_report
from noctaya_operator.render import render_all
from pydantic import ValidationError

TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
SAID = st.sampled_from(
    ["bytesDone", "bytesTotal", "bytesPerSecond", "etaSeconds", "attempt", "code", "currentFile", "message"]
)
KEPT = st.sampled_from(
    ["metadata", "spec", "status", "name", "labels", "annotations", "ownerReferences", "uid", "containers"]
)
LEFT = st.sampled_from(
    [
        "containerStatuses",
        "initContainerStatuses",
        "state",
        "lastState",
        "terminated",
        "exitCode",
        "finishedAt",
    ]
)


def documents(names: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | TEXT, inner, max_size=5),
        max_leaves=12,
    )


def assert_writable(text: str) -> None:
    assert json.dumps(text, ensure_ascii=False).encode()


@given(said=documents(SAID).map(json.dumps) | TEXT | st.binary(max_size=60))
@example(said='{"message": "\\ud800", "code": 1}')
@example(said="[" * 100_000)
def test_fuzz_what_an_agent_says_fits_into_a_status(said: str | bytes) -> None:
    for text in _texts(parse_report(said)):
        assert_writable(text)


def _texts(report: Any) -> list[str]:
    if report is None:
        return []
    return [report.message, report.reason, report.current_file, report.revision, report.digest]


@given(pods=st.lists(st.fixed_dictionaries({"status": st.dictionaries(LEFT, documents(LEFT))}), max_size=3))
def test_fuzz_what_containers_left_behind_is_read_or_left_out(pods: list[Any]) -> None:
    for text in _texts(last_report(pods)):
        assert_writable(text)


METADATA = {"name": "chat", "namespace": "team", "uid": "u", "generation": 1}
RUNTIME = InferenceRuntime.model_validate(
    {
        "metadata": {"name": "engine"},
        "spec": {"vendor": "cpu", "container": {"image": "example.com/engine:1", "port": {}}},
    }
)
SPEC = st.sampled_from(
    [
        "model",
        "source",
        "uri",
        "runtime",
        "name",
        "cache",
        "strategy",
        "size",
        "scaling",
        "max",
        "endpoint",
        "drainTimeout",
        "cpu",
        "memory",
        "secretRef",
        "prewarm",
    ]
)
URIS = st.sampled_from(["hf://org/model", "pvc://claim/a", "s3://b/p", "oci://r/x:tag", "hf://{{", "gs://x"])
VALUES = (
    URIS
    | SCALARS
    | st.sampled_from(["HostPath", "SharedPVC", "1Gi", "5s", "-1", "{{ .Model.Path }}", "1e99"])
)


@given(
    spec=st.fixed_dictionaries(
        {"model": st.fixed_dictionaries({"source": st.fixed_dictionaries({"uri": URIS})})},
        optional={
            name: st.recursive(
                VALUES,
                lambda inner: st.dictionaries(SPEC, inner, max_size=4) | st.lists(inner, max_size=3),
                max_leaves=8,
            )
            for name in ("cache", "scaling", "endpoint", "resources", "runtime")
        },
    )
)
def test_fuzz_any_service_is_invalid_or_refused_or_rendered(spec: dict[str, Any]) -> None:
    try:
        service = LLMService.model_validate(
            {"metadata": METADATA, "spec": {**spec, "runtime": {"name": "engine"}}}
        )
    except ValidationError:
        return
    try:
        plan = plan_service(service, runtimes=[RUNTIME], defaults=Defaults(), precedent=NONE)
    except PlanError as error:
        assert_writable(str(error))
        return
    for each in render_all(plan, demand_token="t" * 43, hold_at_zero=False):
        assert json.dumps(each.object, ensure_ascii=False, allow_nan=False).encode()


@given(obj=st.dictionaries(KEPT | TEXT, documents(KEPT), max_size=5))
def test_fuzz_an_object_of_any_shape_can_be_kept(obj: dict[str, Any]) -> None:
    whole = {**obj, "metadata": {"name": "x", "namespace": "team"}}
    for keep in (pruning.keep_custom, pruning.keep_pod, pruning.keep_written, pruning.keep_slice):
        assert keep(whole)["metadata"]["name"] == "x"
