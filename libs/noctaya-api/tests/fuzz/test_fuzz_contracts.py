"""Reports, triggers, tokens, URIs, manifests: bytes of others are a value or one defined error."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from noctaya_api.demand.report import INT64_MAX, InvalidReport, parse_report
from noctaya_api.duration import parse_duration
from noctaya_api.externalscaler.trigger import InvalidTrigger, parse_trigger
from noctaya_api.gateway_activations import NotAnActivationList, parse_activation_list
from noctaya_api.keep import KeepError, parse_keep
from noctaya_api.model_source import ModelSourceError, parse_model_source
from noctaya_api.process.token_file import parse_tokens
from noctaya_api.quantity import parse_quantity
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from pydantic import ValidationError

TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
FIELDS = st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "model",
        "source",
        "uri",
        "runtime",
        "scaling",
        "cache",
        "endpoint",
        "name",
        "container",
        "vendor",
        "image",
        "port",
        "conditions",
        "resources",
        "max",
        "size",
    ]
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | TEXT, inner, max_size=5),
    max_leaves=15,
)


@given(
    body=st.binary(max_size=100)
    | JSON.map(json.dumps).map(str.encode)
    | st.fixed_dictionaries({"memberID": SCALARS, "sequence": SCALARS, "demand": SCALARS}).map(
        lambda fields: json.dumps(fields).encode()
    )
)
@example(body=b'{"memberID":"\\ud800","sequence":1,"demand":1}')
@example(body=b'{"memberID":"a","sequence":' + b"1" * 5000 + b',"demand":1}')
@example(body=b"[" * 60_000)
def test_fuzz_a_report_counts_or_is_refused(body: bytes) -> None:
    try:
        report = parse_report(body)
    except InvalidReport as error:
        assert str(error).encode()
    else:
        assert 0 <= report.demand <= INT64_MAX
        assert parse_report(report.to_json()) == report


@given(metadata=st.dictionaries(st.sampled_from(["metricName", "targetValue"]) | TEXT, TEXT, max_size=4))
@example(metadata={"targetValue": "9" * 5000})
@example(metadata={"targetValue": "1e400"})
@example(metadata={"targetValue": "\u0663"})
def test_fuzz_kedas_metadata_is_a_trigger_or_invalid(metadata: dict[str, str]) -> None:
    try:
        trigger = parse_trigger(metadata)
    except InvalidTrigger as error:
        assert str(error)
    else:
        assert 1 <= trigger.whole_target <= INT64_MAX


@given(content=st.binary(max_size=100))
@example(content=b"\xef\xbb\xbfkey\r\n")
@example(content=b"\x00" * 100)
def test_fuzz_a_key_file_holds_keys_or_is_refused_without_telling_them(content: bytes) -> None:
    try:
        tokens = parse_tokens(content)
    except ValueError as error:
        assert not content.strip() or content.strip().decode("latin-1") not in str(error)
    else:
        assert all(token == token.strip() != b"" for token in tokens)


@given(text=TEXT | st.from_regex(r"(hf|oci|s3|pvc|modelscope)://[a-z/.@:\-\x00{}]{0,30}"))
@example(text="oci://r:" + "9" * 5000 + "/x:y")
def test_fuzz_a_model_uri_is_a_source_or_an_error(text: str) -> None:
    try:
        source = parse_model_source(text)
    except ModelSourceError as error:
        assert str(error)
    else:
        assert ".." not in source.path.split("/")


@given(text=TEXT | st.from_regex(r"[0-9]{0,30}(ns|us|ms|s|m|h|Ki|Mi|e[0-9]{1,9}|E)?", fullmatch=True))
@example(text="9" * 5000 + "h")
@example(text="1e999999999")
def test_fuzz_amounts_are_read_or_refused(text: str) -> None:
    for parse in (parse_duration, parse_quantity):
        try:
            assert parse(text) is not None
        except ValueError as error:
            assert str(error)


@given(obj=JSON | st.fixed_dictionaries({"metadata": st.just({"name": "x"}), "spec": JSON}))
def test_fuzz_any_object_is_one_of_ours_or_invalid(obj: Any) -> None:
    for model in (LLMService, InferenceRuntime):
        try:
            found = model.model_validate(obj)
        except ValidationError as error:
            assert error.errors()
        else:
            assert found.metadata.name


@given(
    text=TEXT
    | st.from_regex(r"(awake|asleep)( [0-9]{1,12}| replicas=[0-9]{1,9})?( until [0-9TZ:.+-]{0,25})?")
)
@example(text="awake until 9999-12-31T23:59:59-23:59")
@example(text="asleep until 0001-01-01T00:00:00+23:59")
def test_fuzz_a_wish_in_an_annotation_is_read_or_refused(text: str) -> None:
    try:
        wish = parse_keep(text)
    except KeepError as error:
        assert str(error)
    else:
        assert parse_keep(wish.text).text == wish.text


MOMENTS = (
    st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00"]) | SCALARS
)
LISTED = st.fixed_dictionaries(
    {"id": st.just("a" * 32) | SCALARS, "requested": MOMENTS},
    optional={"ready": MOMENTS, "firstByte": MOMENTS},
)


@given(
    body=st.binary(max_size=60)
    | JSON.map(json.dumps).map(str.encode)
    | st.fixed_dictionaries({"now": MOMENTS, "activations": st.lists(LISTED, max_size=3)}).map(
        lambda fields: json.dumps(fields).encode()
    )
)
@example(body=b"[" * 100_000)
def test_fuzz_what_a_gateway_tells_of_activations_is_read_or_refused(body: bytes) -> None:
    try:
        found = parse_activation_list(body)
    except NotAnActivationList as error:
        assert str(error)
    else:
        assert parse_activation_list(found.to_json()).activations is not None
