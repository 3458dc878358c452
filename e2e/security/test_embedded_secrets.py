"""Keys, tokens, prompts: `noctaya run`, at the most verbose level, through success and failure, writes none
of them to its terminal, its logs, its events or any other file; nor those of a manifest that it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from .canaries import files_below, leaks
from .programs import Program, eventually

MODEL = Path(__file__).parents[2] / "libs" / "noctaya-cli" / "tests" / "fake_model.py"
SECRETS = {
    "client key": "canary-client-key-0f9a3be7c1d2",
    "wrong client key": "canary-wrong-key-b1946ac92492",
    "prompt": "canary-prompt-jumps-over-the-lazy-dog",
    "query": "canary-query-6b86b273ff34fce1",
    "cookie": "canary-cookie-d4735e3a265e16ee",
    "value of a manifest": "canary-literal-4e07408562bedb8b",
    "hub token of the shell": "canary-hub-token-4b227777d4dd1fc6",
    "proxy password": "canary-proxy-password-ef2d127de37b",
    "header of the collector": "canary-collector-e7f6c011776e8db7",
}


def runtime(name: str, *arguments: str) -> dict[str, Any]:
    container = {
        "image": "example/fake",
        "command": [sys.executable, "-I", "-S", str(MODEL)],
        "args": ["--port", "8000", *arguments],
        "env": [{"name": "ENGINE_TOKEN", "value": SECRETS["value of a manifest"]}],
        "port": {},
    }
    probe = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1, "failureThreshold": 60}
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "InferenceRuntime",
        "metadata": {"name": name},
        "spec": {"vendor": "cpu", "family": "custom", "container": container, "health": {"startup": probe}},
    }


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "LLMService",
        "metadata": {"name": name},
        "spec": {
            "model": {"source": {"uri": f"pvc://models/{name}"}},
            "runtime": {"name": name},
            "scaling": {"max": 1, "activationTimeout": "10s"},
            "endpoint": {"authentication": {"secretRef": {"name": "keys", "key": "api"}}},
        },
    }


def ask(url: str, key: str, *, stream: bool = False) -> int:
    """One request; its status, 0 for an answer that broke off."""
    headers = {"Authorization": f"Bearer {key}", "Cookie": f"session={SECRETS['cookie']}"}
    body = {"stream": stream, "messages": [{"role": "user", "content": SECRETS["prompt"]}]}
    path = f"{url}/v1/chat/completions?api_key={SECRETS['query']}"
    try:
        return httpx.post(path, json=body, headers=headers, timeout=60, trust_env=False).status_code
    except httpx.TransportError:
        return 0


def family(pid: int) -> list[int]:
    """A process and all below it, whichever of its threads started them."""
    try:
        children = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return []
    return [pid, *(each for child in " ".join(children).split() for each in family(int(child)))]


def arguments_of(pid: int) -> bytes:
    """Its arguments; nothing when it has just ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def urls(events: Path) -> dict[str, str]:
    """Addresses of the services that serve."""
    found = {}
    for line in events.read_text().splitlines() if events.exists() else ():
        event = json.loads(line)
        if event["event"] == "service_started":
            found[event["service"]] = event["url"]
    return found


def test_secrets_of_a_run_are_written_nowhere(tmp_path: Path) -> None:
    given, home, events = tmp_path / "given", tmp_path / "home", tmp_path / "home" / "events.jsonl"
    for folder in (home, given / "keys", given / "models" / "well", given / "models" / "doomed"):
        folder.mkdir(parents=True)
    (given / "keys" / "api").write_text(f"{SECRETS['client key']}\n")
    objects = [runtime("well"), service("well"), runtime("doomed", "--delay", "60", "--exit-after", "0.2")]
    objects.append(service("doomed"))
    (given / "all.yaml").write_text(yaml.safe_dump_all(objects))
    program = Program(
        "noctaya",
        *("run", str(given / "all.yaml"), "--volume", f"models={given / 'models'}"),
        *("--secret", f"keys={given / 'keys'}", "--port", "0", "--logs", "--events", str(events)),
        *("--gateway-env", "NOCTAYA_LOG_LEVEL=debug", "--gateway-env", "NOCTAYA_ACCESS_LOG=all"),
        env={
            "HF_TOKEN": SECRETS["hub token of the shell"],
            "HTTP_PROXY": f"http://user:{SECRETS['proxy password']}@127.0.0.1:9",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={SECRETS['header of the collector']}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        },
        folder=home,
    )
    with program:
        eventually(lambda: len(urls(events)) == 2, what="both services")
        known = urls(events)
        key, wrong = SECRETS["client key"], SECRETS["wrong client key"]
        statuses = [ask(known["well"], wrong), ask(known["well"], key), ask(known["well"], key, stream=True)]
        statuses += [ask(known["doomed"], wrong), ask(known["doomed"], key)]
        assert statuses[:4] == [401, 200, 200, 401]
        assert statuses[4] in {502, 503, 504}, statuses
        pids = family(program.process.pid)
        arguments = {f"arguments of process {pid}": arguments_of(pid) for pid in pids}
        assert program.end(stop=True) == 0
    assert len(pids) >= 5, "two gateways and a model below their guards"
    saved = files_below(home)
    assert any("gateway" in name for name in saved), sorted(saved)
    assert '"level": "debug"' in program.output
    assert not leaks(SECRETS, {**program.places(), **arguments, **saved})


def broken(change: str) -> str:
    """A manifest that is refused, with a secret near to what is wrong."""
    secret = SECRETS["value of a manifest"]
    engine, wanted = runtime("well"), service("well")
    container = engine["spec"]["container"]
    match change:
        case "a template":
            container["env"][0]["value"] = f"{secret} {{{{ .Nope }}}}"
        case "a type":
            container["env"][0]["value"] = {"token": secret}
        case "an unknown field":
            container["env"][0]["vaule"] = secret
        case "a number":
            wanted["spec"]["scaling"]["max"] = secret
        case "a URL with a password":
            source = {"uri": "hf://org/model", "endpoint": f"https://user:{secret}@mirror.example.com"}
            wanted["spec"]["model"]["source"] = source
        case "syntax":
            return f"spec:\n  env:\n  - value: {secret}\n - value: [{secret}\n"
    return yaml.safe_dump_all([engine, wanted])


CHANGES = ("a template", "a type", "an unknown field", "a number", "a URL with a password", "syntax")


def test_manifests_that_are_refused_keep_their_secrets(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    files = [tmp_path / f"{change.replace(' ', '-')}.yaml" for change in CHANGES]
    for file, change in zip(files, CHANGES, strict=True):
        file.write_text(broken(change))
    with Program("noctaya", "validate", *map(str, files), env={}, folder=home) as program:
        assert program.end() == 1
    assert [file.name for file in files if f"{file}:" not in program.output] == []
    assert not leaks(SECRETS, {**program.places(), **files_below(home)})


@pytest.mark.parametrize("change", ["a template", "a URL with a password"])
def test_a_run_that_is_refused_keeps_its_secrets(tmp_path: Path, change: str) -> None:
    home, keys, models = tmp_path / "home", tmp_path / "keys", tmp_path / "models"
    for folder in (home, keys, models / "well"):
        folder.mkdir(parents=True)
    (keys / "api").write_text(SECRETS["client key"])
    file = tmp_path / "all.yaml"
    file.write_text(broken(change))
    given = ("--volume", f"models={models}", "--secret", f"keys={keys}")
    with Program("noctaya", "run", str(file), *given, env={}, folder=home) as program:
        assert program.end() == 1
    assert f"error: {file}:" in program.output
    assert not leaks(SECRETS, {**program.places(), **files_below(home)})
