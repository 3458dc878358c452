"""The commands as a user calls them, against a fake API server."""

import json
from pathlib import Path
from typing import Any

import pytest
from noctaya_cli.main import app
from typer.testing import CliRunner, Result

from . import objects
from .fake_api import FakeApi


@pytest.fixture
def call(api: FakeApi, tmp_path: Path) -> Any:
    file = api.kubeconfig(tmp_path)

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--kubeconfig", str(file)])

    return run


def degraded(reason: str = "ImagePullFailed") -> Any:
    conditions = [
        objects.condition("Ready", "False", reason, "image vllm:nope\nof Pod chat-1"),
        objects.condition("Degraded", "True", reason, "image vllm:nope\nof Pod chat-1"),
        objects.condition("AutoscalingReady", "True", "ScaledObjectApplied"),
    ]
    return objects.llm_service("broken", conditions=conditions, phase="Degraded")


def test_status_lists_services_with_a_problem_first(api: FakeApi, call: Any) -> None:
    api.collections[objects.OWN_SERVICES] = [
        objects.llm_service("chat", lastActivation=objects.ACTIVATION),
        degraded(),
    ]
    result = call("status")
    assert result.exit_code == 0, result.output
    header, first, second = result.stdout.splitlines()
    assert header.split() == [
        "NAME",
        "PHASE",
        "REPLICAS",
        "DEMAND",
        "QUEUE",
        "KEPT",
        "LAST",
        "COLD",
        "START",
        "PROBLEM",
    ]
    assert first.split(maxsplit=7) == [
        "broken", "Degraded", "0/3", "-", "-", "-", "-", "ImagePullFailed: image vllm:nope of Pod chat-1",
    ]  # fmt: skip
    assert second.split() == ["chat", "ScaledToZero", "0/3", "0", "0", "-", "20.0s", "-"]


def test_status_adds_what_all_gateways_of_a_service_say(api: FakeApi, call: Any) -> None:
    pods = [
        objects.gateway_pod(number=1),
        objects.gateway_pod(number=2),
        objects.gateway_pod(number=3, ready=False),
    ]
    api.collections["/api/v1/pods"] = pods
    for pod, demand in zip(pods, (3, 4, 50), strict=True):
        api.texts[objects.metrics_path(pod)] = objects.metrics(demand=demand, held=demand - 1)
    [row] = json.loads(call("status", "-A", "-o", "json").stdout)
    assert (row["demand"], row["queue"]) == (7, 5)


def test_status_without_the_right_to_the_proxy_shows_the_rest(api: FakeApi, call: Any) -> None:
    api.forbidden.add("/proxy/")
    result = call("status")
    assert result.exit_code == 0
    assert "chat  ScaledToZero  0/3       -       -" in result.stdout
    assert "right to get pods/proxy" in result.stderr


def test_status_of_a_cluster_without_noctaya_says_so(api: FakeApi, call: Any) -> None:
    del api.collections[objects.ALL_SERVICES]
    result = call("status", "-A")
    assert result.exit_code == 1
    assert result.stderr == "error: this cluster has no LLMServices: the CRDs of Noctaya are not installed\n"


def test_status_of_an_empty_namespace_says_so(api: FakeApi, call: Any) -> None:
    api.collections[objects.OWN_SERVICES] = []
    said = "There is no LLMService in namespace models."
    assert call("status").stdout == f"{said} There is 1 elsewhere: add -A.\n"
    api.collections[objects.ALL_SERVICES] = []
    assert call("status").stdout == f"{said}\n"
    api.forbidden.add(objects.ALL_SERVICES)
    assert call("status").stdout == f"{said}\n"


def test_a_service_no_operator_has_seen_is_a_problem(api: FakeApi, call: Any) -> None:
    service = objects.llm_service()
    del service["status"]
    api.collections[objects.OWN_SERVICES] = [service]
    assert "NotReconciled: no operator has looked at this service yet" in call("status").stdout


def test_explain_says_what_is_wrong_and_what_to_do(api: FakeApi, call: Any) -> None:
    api.objects[f"{objects.OWN_SERVICES}/broken"] = degraded()
    text = call("explain", "broken").stdout
    assert "models/broken: Degraded, 0 of at most 3 ready" in text
    assert "✖ ImagePullFailed (Degraded, for " in text
    assert text.count("ImagePullFailed") == 1
    assert "→ Correct `container.image` of the runtime" in text
    assert "(no gateway of this service answers: clients can't reach it either)" in text


def test_explain_draws_the_last_cold_start(api: FakeApi, call: Any) -> None:
    api.objects[f"{objects.OWN_SERVICES}/chat"] = objects.llm_service(lastActivation=objects.ACTIVATION)
    text = call("explain", "chat").stdout
    assert "Nothing is wrong." in text
    assert "models/chat: cold start of 20.00 s" in text
    assert "most of it: load, 85 %" in text
    assert call("explain", "chat", "-o", "svg").stdout.startswith("<svg ")
    found = json.loads(call("explain", "chat", "-o", "json").stdout)
    assert found["phases"] == {
        "autoscaling": 0.5, "scheduling": 0.5, "image_pull": 1.0, "start": 1.0, "load": 17.0, "total": 20.0,
    }  # fmt: skip


def test_explain_tells_of_the_cold_starts_before_and_of_what_the_service_is_kept(
    api: FakeApi, call: Any
) -> None:
    former = {**objects.ACTIVATION, "id": "a" * 32, "ended": "2026-11-30T09:55:00Z"}
    api.objects[f"{objects.OWN_SERVICES}/chat"] = objects.llm_service(
        lastActivation=objects.ACTIVATION,
        recentActivations=[former, {"of": "a newer version"}],
        keep={"state": "Awake", "replicas": 2},
    )
    text = call("explain", "chat").stdout
    assert "  kept     awake 2" in text
    assert text.count("20.00 s") == 3, "headline, ready, and the one before"
    found = json.loads(call("explain", "chat", "-o", "json").stdout)
    (before,) = found["recentActivations"]
    assert (before["id"], before["phases"]["load"]) == ("a" * 32, 17.0)
    assert found["keep"] == {"state": "Awake", "replicas": 2}
    assert " ago</text>" in call("explain", "chat", "-o", "svg").stdout


def test_explain_shows_only_the_events_of_this_service(api: FakeApi, call: Any) -> None:
    def event(name: str, at: str, note: str) -> Any:
        regarding = {"kind": "LLMService", "uid": f"uid-{name}"}
        return {
            "regarding": regarding,
            "eventTime": at,
            "reason": "Activated",
            "note": note,
            "type": "Normal",
        }

    api.collections[objects.EVENTS] = [
        event("chat", "2026-11-30T09:00:00Z", "older"),
        event("chat", "2026-11-30T09:30:00Z", "newer"),
        event("other", "2026-11-30T09:40:00Z", "foreign"),
    ]
    text = call("explain", "chat").stdout
    assert text.index("newer") < text.index("older")
    assert "foreign" not in text


def test_explain_svg_without_a_cold_start_is_an_error(api: FakeApi, call: Any) -> None:
    result = call("explain", "chat", "-o", "svg")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: no cold start of chat is on record\n"


def test_explain_of_a_service_that_is_not_there_names_it(call: Any) -> None:
    result = call("explain", "nobody")
    assert result.exit_code == 1
    assert result.stderr == "error: there is no LLMService nobody in namespace models; there is chat\n"


def test_what_somebody_wrote_into_a_message_does_not_reach_the_terminal_raw(api: FakeApi, call: Any) -> None:
    api.objects[f"{objects.OWN_SERVICES}/chat"] = objects.llm_service(
        conditions=[objects.condition("Degraded", "True", "Cache", "\x1b[2Jgone\x07")]
    )
    assert "\x1b" not in call("explain", "chat").stdout
    assert "\x07" not in call("explain", "chat").stdout


def test_top_without_a_terminal_points_to_status(call: Any) -> None:
    result = call("top")
    assert result.exit_code == 1
    assert "noctaya status -o json" in result.stderr
