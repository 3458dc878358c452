"""`noctaya wake|pin|unpin|sleep` as a user calls them, against a fake API server."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from noctaya_api.keep import Keep, parse_keep, time_text
from noctaya_cli.main import app
from typer.testing import CliRunner, Result

from . import objects
from .fake_api import FakeApi

KEEP = "serving.noctaya.io/keep"
CHAT = f"{objects.OWN_SERVICES}/chat"


@pytest.fixture
def call(api: FakeApi, tmp_path: Path) -> Any:
    file = api.kubeconfig(tmp_path)
    api.objects[CHAT] = objects.llm_service()

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--kubeconfig", str(file)])

    return run


def annotate(api: FakeApi, text: str) -> None:
    api.objects[CHAT]["metadata"]["annotations"] = {KEEP: text}


def written(api: FakeApi) -> str | None:
    [patch] = api.patches
    assert set(patch) == {"metadata"}
    text: str | None = patch["metadata"]["annotations"][KEEP]
    return text


def keep(api: FakeApi) -> Keep:
    return parse_keep(str(written(api)))


def left(wish: Keep) -> float:
    assert wish.until is not None
    return (wish.until - datetime.now(UTC)).total_seconds()


def obeys(api: FakeApi) -> None:
    """Play an operator that does at once what is asked."""

    def act(service: Any) -> None:
        text = service["metadata"]["annotations"].get(KEEP)
        if text is None:
            service["status"].pop("keep", None)
            return
        wish = parse_keep(text)
        status = {"state": str(wish.state), "replicas": wish.replicas}
        if wish.until is not None:
            status["until"] = time_text(wish.until)
        service["status"]["keep"] = status
        service["status"]["conditions"].append(
            objects.condition("Kept", "True", str(wish.state), "all is so")
        )

    api.on_patch = act


def test_wake_lasts_as_long_as_a_request_could_keep_the_service(api: FakeApi, call: Any) -> None:
    api.objects[CHAT]["spec"]["scaling"] |= {"activationTimeout": "10m", "scaleDownStabilization": "90s"}
    result = call("wake", "chat")
    assert result.exit_code == 0, result.output
    wish = keep(api)
    assert wish.replicas == 1
    assert 600 <= left(wish) <= 692
    assert (
        result.stdout == f"models/chat is kept awake with at least 1 replica until {time_text(wish.until)}.\n"
    )


def test_wake_for_a_time_of_the_users_own(api: FakeApi, call: Any) -> None:
    assert call("wake", "chat", "--for", "2h").exit_code == 0
    assert 7000 <= left(keep(api)) <= 7202


def test_wake_never_shortens_or_lessens_what_somebody_pinned(api: FakeApi, call: Any) -> None:
    annotate(api, "awake 2")
    result = call("wake", "chat")
    assert result.exit_code == 0
    assert api.patches == []
    assert "already kept awake with at least 2 replicas until `noctaya unpin`" in result.stdout


def test_wake_prolongs_a_shorter_one_with_its_replicas(api: FakeApi, call: Any) -> None:
    annotate(api, f"awake 2 until {time_text(datetime.now(UTC) + timedelta(seconds=60))}")
    assert call("wake", "chat", "--for", "1h").exit_code == 0
    assert keep(api).replicas == 2
    assert left(keep(api)) > 3300


@pytest.mark.parametrize("before", ["asleep", "awake until 2020-01-01T00:00:00Z", "nonsense"])
def test_wake_replaces_a_sleep_and_what_is_over_or_cannot_be_read(
    api: FakeApi, call: Any, before: str
) -> None:
    annotate(api, before)
    assert call("wake", "chat").exit_code == 0
    assert keep(api).replicas == 1


def test_pin_lasts_until_it_is_taken_back(api: FakeApi, call: Any) -> None:
    result = call("pin", "chat", "--replicas", "2")
    assert written(api) == "awake 2"
    assert "at least 2 replicas until `noctaya unpin`." in result.stdout


def test_pin_of_more_than_the_service_may_have_is_refused(api: FakeApi, call: Any) -> None:
    result = call("pin", "chat", "--replicas", "4")
    assert (result.exit_code, api.patches) == (1, [])
    assert "chat may have 3 at most (spec.scaling.max)" in result.stderr


def test_sleep_lasts_until_it_is_taken_back_or_for_a_time(api: FakeApi, call: Any) -> None:
    result = call("sleep", "chat")
    assert written(api) == "asleep"
    assert "requests are refused; `noctaya wake` or `unpin` ends that." in result.stdout
    api.patches.clear()
    assert call("sleep", "chat", "--for", "30m").exit_code == 0
    assert 1600 <= left(keep(api)) <= 1802


@pytest.mark.parametrize("before", ["awake 2", "asleep", "nonsense", "awake until 2020-01-01T00:00:00Z"])
def test_unpin_removes_whatever_there_is(api: FakeApi, call: Any, before: str) -> None:
    annotate(api, before)
    assert call("unpin", "chat").stdout == "models/chat follows demand again.\n"
    assert written(api) is None


def test_unpin_of_a_service_that_is_not_kept_writes_nothing(api: FakeApi, call: Any) -> None:
    result = call("unpin", "chat")
    assert (result.exit_code, api.patches) == (0, [])
    assert "nothing else was asked of it" in result.stdout


def test_other_annotations_stay_and_replicas_are_never_written(api: FakeApi, call: Any) -> None:
    api.objects[CHAT]["metadata"]["annotations"] = {"team": "search"}
    for words in (("wake",), ("pin",), ("sleep",), ("unpin",)):
        assert call(*words, "chat").exit_code == 0
    assert api.objects[CHAT]["metadata"]["annotations"] == {"team": "search"}
    assert {path for method, path in api.seen if method != "GET"} == {CHAT}


def test_a_change_of_somebody_else_is_read_before_it_is_written_over(api: FakeApi, call: Any) -> None:
    api.conflicts = 2
    assert call("pin", "chat").exit_code == 0
    assert written(api) == "awake 1"
    api.conflicts = 99
    result = call("sleep", "chat")
    assert result.exit_code == 1
    assert result.stderr == "error: models/chat changes all the time; try again\n"


def test_who_may_not_patch_is_told_which_right_it_takes(api: FakeApi, call: Any) -> None:
    api.forbidden.add("PATCH")
    result = call("pin", "chat")
    assert result.exit_code == 1
    assert "right to get and patch llmservices.serving.noctaya.io in namespace models" in result.stderr


def test_a_service_that_is_not_there_is_named(call: Any) -> None:
    result = call("sleep", "nobody")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: there is no LLMService nobody in namespace models; there is chat\n",
    )


@pytest.mark.parametrize("lasts", ["0s", "-5m", "soon", "200000h"])
def test_a_time_that_is_none_is_wrong_usage(api: FakeApi, call: Any, lasts: str) -> None:
    result = call("wake", "chat", f"--for={lasts}")
    assert (result.exit_code, api.seen) == (2, [])
    assert "--for" in result.stderr


def test_the_end_is_set_by_the_clock_of_the_cluster(api: FakeApi, call: Any) -> None:
    api.date = "Mon, 30 Nov 2015 08:00:00 GMT"
    assert call("sleep", "chat", "--for", "1h").exit_code == 0
    until = keep(api).until
    assert until is not None
    assert timedelta() <= until - datetime(2015, 11, 30, 9, 0, tzinfo=UTC) < timedelta(minutes=3)


def test_waiting_ends_once_the_service_is_so(api: FakeApi, call: Any) -> None:
    obeys(api)
    result = call("pin", "chat", "--wait")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].endswith("s  ScaledToZero: all is so")


def test_waiting_in_vain_has_an_exit_code_of_its_own(api: FakeApi, call: Any) -> None:
    result = call("sleep", "chat", "--wait", "--timeout", "10ms", "-o", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {
        "namespace": "models",
        "name": "chat",
        "keep": {"state": "Asleep", "replicas": 0, "until": None},
        "changed": True,
        "reached": False,
    }
    assert "not within 0.01 s; last seen: the operator has not seen it yet" in result.stderr


def test_json_says_what_holds(api: FakeApi, call: Any) -> None:
    found = json.loads(call("unpin", "chat", "-o", "json").stdout)
    assert found == {"namespace": "models", "name": "chat", "keep": None, "changed": False, "reached": None}


def test_ctrl_c_while_waiting_ends_with_the_code_of_shells(
    api: FakeApi, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("noctaya_cli.cluster.keeping.follow", interrupted)
    result = call("pin", "chat", "--wait")
    assert (result.exit_code, result.stderr) == (130, "")
    assert written(api) == "awake 1", "what was asked for holds"
