from typing import Any

import pytest
from noctaya_api.preflight import preflight_runtime, preflight_service
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService


def service(**spec: Any) -> LLMService:
    smallest = {"model": {"source": {"uri": "hf://org/model"}}, "runtime": {"name": "local"}}
    return LLMService.model_validate({"metadata": {"name": "chat"}, "spec": {**smallest, **spec}})


def runtime(container: dict[str, Any], **accelerator: Any) -> InferenceRuntime:
    spec = {"vendor": "cpu", "container": {"image": "i", "port": {}, **container}, "accelerator": accelerator}
    return InferenceRuntime.model_validate({"metadata": {"name": "local"}, "spec": spec})


def test_a_sound_service_has_no_findings() -> None:
    assert (
        list(preflight_service(service(runtime={"name": "a", "argsOverride": ["{{ .Service.Name }}"]}))) == []
    )


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"model": {"catalogRef": "qwen"}}, ("spec", "model", "catalogRef"), "reserved"),
        (
            {"model": {"source": {"uri": "gs://a/b"}}},
            ("spec", "model", "source", "uri"),
            "unsupported scheme",
        ),
        (
            {"model": {"source": {"uri": "s3://bucket"}}, "cache": {"strategy": "None"}},
            ("spec", "cache", "strategy"),
            "can't hold the weights",
        ),
        (
            {"model": {"source": {"uri": "modelscope://a/b", "secretRef": {"name": "s"}}}},
            ("spec", "model", "source", "secretRef"),
            "set cache.prewarm",
        ),
        ({"resources": {"fraction": {}}}, ("spec", "resources", "fraction"), "reserved"),
        ({"scaling": {"metric": "kvCacheUtil"}}, ("spec", "scaling", "metric"), "reserved"),
        ({"cache": {"strategy": "BakedImage"}}, ("spec", "cache", "strategy"), "reserved"),
        (
            {"runtime": {"name": "a", "argsOverride": ["x", "{{ .Foo }}"]}},
            ("spec", "runtime", "argsOverride", 1),
            "unknown field .Foo",
        ),
    ],
)
def test_what_the_operator_would_refuse_is_found(spec: Any, path: tuple[Any, ...], message: str) -> None:
    ((found, text),) = preflight_service(service(**spec))
    assert found == path
    assert message in text


def test_templates_of_a_runtime_are_checked_wherever_they_stand() -> None:
    container = {
        "command": ["{{ .Foo }}"],
        "args": ["{{ .Model.Path }}", "{{"],
        "env": [
            {"name": "A", "value": "{{ .Model.Path }}"},
            {"name": "B", "value": "{{ if }}"},
            {"name": "C"},
        ],
    }
    assert [path for path, _ in preflight_runtime(runtime(container))] == [
        ("spec", "container", "command", 0),
        ("spec", "container", "args", 1),
        ("spec", "container", "env", 1, "value"),
    ]


def test_a_queue_needs_the_scheduler_that_has_queues() -> None:
    assert list(preflight_runtime(runtime({}, scheduler={"name": "volcano", "queue": "q"}))) == []
    for scheduler in ({"queue": "q"}, {"name": "other", "queue": "q"}):
        ((path, message),) = preflight_runtime(runtime({}, scheduler=scheduler))
        assert path == ("spec", "accelerator", "scheduler", "queue")
        assert "volcano" in message


def test_a_variable_that_can_not_be_rendered_is_told_without_its_value() -> None:
    found = runtime({"env": [{"name": "TOKEN", "value": "s3cret {{ .Nope }}"}]})
    ((path, message),) = preflight_runtime(found)
    assert path == ("spec", "container", "env", 0, "value")
    assert message.startswith("character 11: unknown field .Nope")
    assert "s3cret" not in message
