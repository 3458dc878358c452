"""One table of accepted and refused objects, judged by the models and by the schemas with their CEL rules."""

from typing import Any

import pytest
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from pydantic import ValidationError

MODELS: dict[str, type[LLMService] | type[InferenceRuntime]] = {
    "LLMService": LLMService,
    "InferenceRuntime": InferenceRuntime,
}


def test_the_models_accept_and_refuse_what_the_table_says(case: Any) -> None:
    if case.accepted:
        MODELS[case.kind].model_validate(case.object)
        return
    with pytest.raises(ValidationError) as refused:
        MODELS[case.kind].model_validate(case.object)
    assert all(dotted(error["loc"]).startswith(case.at) for error in refused.value.errors())


def test_the_schemas_and_their_cel_rules_accept_and_refuse_what_the_table_says(
    case: Any, admission: Any
) -> None:
    errors = admission.admit(case.object).errors
    assert (errors == []) is case.accepted, errors
    assert all(path.startswith(case.at) for path, _ in errors), errors


def test_an_accepted_object_is_stored_as_the_model_writes_it(case: Any, admission: Any) -> None:
    if case.accepted:
        written = MODELS[case.kind].model_validate(case.object).manifest()
        assert written == quantities_as_text(admission.admit(case.object).stored)


def test_a_broken_rule_reads_the_same_from_model_and_schema(case: Any, admission: Any) -> None:
    """Rules only; refusals by type are worded by whoever makes them."""
    try:
        MODELS[case.kind].model_validate(case.object)
    except ValidationError as refused:
        for error in refused.errors():
            if error["type"] == "rule":
                assert error["msg"] in [message for _, message in admission.admit(case.object).errors]


def test_o1_the_status_of_a_service_with_an_illegal_name_can_still_be_written(
    admission: Any, smallest: Any
) -> None:
    stored_by_an_older_version = smallest("LLMService")
    stored_by_an_older_version["metadata"]["name"] = "qwen2.5"
    assert admission.admit(stored_by_an_older_version).errors
    assert admission.admit(stored_by_an_older_version, update=True).errors == []


def quantities_as_text(value: Any, key: str = "") -> Any:
    """The models keep a quantity that was written as an integer as its digits."""
    if isinstance(value, dict):
        return {name: quantities_as_text(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [quantities_as_text(item) for item in value]
    return str(value) if key in {"cpu", "memory", "size", "divisor"} else value


def dotted(path: tuple[Any, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def test_every_rule_is_broken_by_some_case(admission: Any, all_cases: Any) -> None:
    """A rule that nothing in the table breaks might hold for everything."""
    broken = {message for case in all_cases for _, message in admission.admit(case.object).errors}
    assert set(admission.messages()) <= broken
