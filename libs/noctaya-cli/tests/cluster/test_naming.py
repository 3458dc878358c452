"""What people type for a name, and where they look for what is not there."""

from pathlib import Path
from typing import Any

import pytest
from noctaya_cli.cluster.naming import NotAName, namespace_name, service_name
from noctaya_cli.main import app
from typer.testing import CliRunner, Result

from . import objects
from .fake_api import FakeApi

COMMANDS = ("explain", "wake", "pin", "unpin", "sleep")


@pytest.fixture
def call(api: FakeApi, tmp_path: Path) -> Any:
    file = api.kubeconfig(tmp_path)

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--kubeconfig", str(file)])

    return run


@pytest.mark.parametrize("text", ["chat", "qwen2-5-7b", "a.b", "0", "llm/chat", "llmservice/chat"])
def test_names_are_taken_as_kubectl_takes_them(text: str) -> None:
    assert service_name(text) == text.rpartition("/")[2]


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a/../b", "-x", "x-", "Chat", "a b", "ä", "a%2fb", "x" * 254]
)
def test_what_can_be_no_name_asks_nothing_of_a_cluster(api: FakeApi, call: Any, text: str) -> None:
    for command in COMMANDS:
        result = call(command, "--", text) if text.startswith("-") else call(command, text)
        assert (result.exit_code, api.seen) == (2, []), result.output
    with pytest.raises(NotAName):
        namespace_name(text)
    assert call("status", f"--namespace={text}").exit_code == 2
    assert api.seen == []


def test_a_namespace_before_the_name_is_told_as_the_option_it_is(call: Any) -> None:
    result = call("explain", "models/chat")
    assert result.exit_code == 2
    assert "chat -n models" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_service_of_another_namespace_is_found(api: FakeApi, call: Any, command: str) -> None:
    result = call(command, "chat", "-n", "team-b")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: there is no LLMService chat in namespace team-b; there is one in models: add -n models\n"
    )


def test_a_typing_error_is_answered_with_the_names_that_are_close(api: FakeApi, call: Any) -> None:
    api.collections[objects.ALL_SERVICES] = [
        objects.llm_service(name) for name in ("embeddings", "chat-large", "chat-small")
    ]
    assert call("explain", "chat-smal").stderr.endswith("; there is chat-small, chat-large\n")
    assert call("explain", "zzz").stderr.endswith("; there is chat-large, chat-small, embeddings\n")


def test_without_the_right_to_list_only_the_hint_is_missing(api: FakeApi, call: Any) -> None:
    api.forbidden.add(objects.ALL_SERVICES)
    result = call("wake", "nobody", "-n", "team-b")
    assert result.stderr == "error: there is no LLMService nobody in namespace team-b\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cluster_without_noctaya_is_named_as_that(api: FakeApi, call: Any, command: str) -> None:
    api.collections.clear()
    api.objects.clear()
    result = call(command, "chat")
    assert result.exit_code == 1
    assert result.stderr == "error: this cluster has no LLMServices: the CRDs of Noctaya are not installed\n"
