"""Arguments and environment of the serving container."""

from __future__ import annotations

import pytest
from noctaya_api.conditions import StepReason
from noctaya_operator.plan import PlanError
from samples import engine, env_of, plan, runtime, service


def test_r1_overrides_follow_the_runtimes_arguments_and_all_are_rendered() -> None:
    given = service(runtime={"argsOverride": ["--ns", "{{ .Service.Namespace }}"]})
    on = runtime(container={"args": ["{{ .Model.Path }}", "--name={{.Service.Name}}"]})
    assert engine(plan(given, on=on))["args"] == ["org/model", "--name=chat", "--ns", "team"]


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["{{ .Model.Size }}"]},
        {"command": ["{{ .Model"]},
        {"env": [{"name": "A", "value": "{{ .Nope }}"}]},
    ],
)
def test_r2_a_template_that_can_not_be_rendered_is_refused(container: dict[str, object]) -> None:
    with pytest.raises(PlanError, match="template") as refused:
        plan(on=runtime(container=container))
    assert refused.value.reason is StepReason.RENDER


def test_a_variable_that_can_not_be_rendered_is_told_without_its_value() -> None:
    env = [{"name": "TOKEN", "value": "s3cret {{ .Nope }}"}]
    with pytest.raises(PlanError) as refused:
        plan(on=runtime(container={"env": env}))
    assert "environment variable TOKEN, character 11: unknown field .Nope" in refused.value.message
    assert "s3cret" not in refused.value.message


def test_r2_an_override_that_can_not_be_rendered_is_refused() -> None:
    with pytest.raises(PlanError) as refused:
        plan(service(runtime={"argsOverride": ["{{ .Nope }}"]}))
    assert refused.value.reason is StepReason.RENDER


def test_c3_modelscope_tells_the_engine() -> None:
    env = env_of(engine(plan(service(uri="modelscope://org/model"))))
    assert env["VLLM_USE_MODELSCOPE"] == "true"
    assert "VLLM_USE_MODELSCOPE" not in env_of(engine(plan()))


def test_o11_an_entry_of_the_runtime_wins_without_a_duplicate() -> None:
    env = [
        {"name": "MODELSCOPE_CACHE", "value": "/elsewhere"},
        {"name": "VLLM_USE_MODELSCOPE", "value": "false"},
        {"name": "HF_HOME", "valueFrom": {"configMapKeyRef": {"name": "hub", "key": "home"}}},
    ]
    found = engine(plan(service(uri="modelscope://org/model"), on=runtime(container={"env": env})))["env"]
    assert found == env


def test_o11_of_two_entries_of_the_runtime_the_later_counts() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]
    found = engine(plan(service(cache={"strategy": "None"}), on=runtime(container={"env": env})))["env"]
    assert found == [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]


def test_h3_without_a_cache_there_is_no_environment_for_it() -> None:
    assert "env" not in engine(plan(service(cache={"strategy": "None"})))


@pytest.mark.parametrize("family", ["vllm", "sglang"])
def test_a_revision_reaches_the_engines_that_know_the_flag(family: str) -> None:
    given = service(uri="hf://org/model@v2", runtime={"argsOverride": ["--last"]})
    planned = plan(given, on=runtime(family=family))
    assert engine(planned)["args"] == ["org/model", "--revision", "v2", "--last"]
    assert planned.notes == ()


@pytest.mark.parametrize("said", [["--revision", "v1"], ["--revision=v1"]])
def test_a_revision_somebody_already_passes_is_not_passed_again(said: list[str]) -> None:
    given = service(uri="hf://org/model@v2", runtime={"argsOverride": said})
    assert engine(plan(given))["args"] == ["org/model", *said]


def test_a_revision_that_nobody_passes_is_noted() -> None:
    planned = plan(service(uri="hf://org/model@v2"), on=runtime(vendor="cpu", family="llamacpp"))
    assert engine(planned)["args"] == ["org/model"]
    assert "'v2'" in planned.notes[0]


def test_r10_the_path_of_a_staged_model_is_below_its_mount() -> None:
    assert engine(plan(service(uri="pvc://models/tiny/v1")))["args"] == ["/models/tiny/v1"]
