"""The console script as a process: arguments, signals, exit codes, progress, termination message."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from noctaya_model_hub import Effect, Hub, Match, Served

from .kit import REPOSITORY, SOURCE, assert_whole, hub_beside

SCRIPT = Path(sys.executable).with_name("noctaya-prewarm")


class Agent:
    """A running agent."""

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
        self.termination = folder / "termination-log"
        self.process = subprocess.Popen(
            [str(SCRIPT), *arguments],
            env={
                "PATH": os.environ["PATH"],
                "NOCTAYA_PREWARM_LISTEN_ADDR": "127.0.0.1:0",
                "NOCTAYA_PREWARM_TERMINATION_LOG": str(self.termination),
                **env,
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []

    def until(self, message: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            entry: dict[str, Any] = json.loads(line)
            self.lines.append(entry)
            if message in entry["msg"]:
                return entry
        raise AssertionError(f"it ended without {message!r}: {self.lines}")

    def end(self, timeout: float = 60) -> tuple[int, dict[str, Any], str]:
        _, rest = self.process.communicate(timeout=timeout)
        message = json.loads(self.termination.read_text()) if self.termination.exists() else {}
        return self.process.returncode, message, rest + json.dumps(self.lines)

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def download(target: Path, source: str = SOURCE) -> list[str]:
    return ["download", "--source", source, "--target", str(target)]


def test_a_download_ends_with_0_and_says_what_it_has(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    with Agent(tmp_path, *download(target), HF_ENDPOINT=served.url) as agent:
        code, message, _ = agent.end()
    assert code == 0
    assert_whole(target, hub)
    total = message["bytesTotal"]
    assert message == {
        "state": "Done",
        "bytesDone": total,
        "bytesTotal": total,
        "bytesPerSecond": message["bytesPerSecond"],
        "currentFile": message["currentFile"],
        "etaSeconds": 0,
        "attempt": 1,
        "message": "the model is complete and verified",
        "code": 0,
        "reason": "Done",
        "revision": hub.repositories[REPOSITORY].refs["main"],
    }


def test_m6_progress_metrics_and_health_are_served_meanwhile(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    hub.faults.add(Match(route="cdn"), Effect(stall_after=1_000_000))
    with Agent(tmp_path, *download(target), HF_ENDPOINT=served.url) as agent:
        base = f"http://127.0.0.1:{agent.until('serving')['http_port']}"
        ends = time.monotonic() + 60
        while True:  # a small file may be the current one for a moment
            now = json.loads(get(f"{base}/progress"))
            if now["bytesDone"] >= 1_000_000 and now["currentFile"] == "model.safetensors":
                break
            assert time.monotonic() < ends, now
            time.sleep(0.02)
        assert set(now) == {
            "state",
            "bytesDone",
            "bytesTotal",
            "bytesPerSecond",
            "currentFile",
            "etaSeconds",
            "attempt",
        }
        assert now["state"] == "Downloading"
        assert now["bytesTotal"] > now["bytesDone"]
        metrics = get(f"{base}/metrics")
        assert 'noctaya_prewarm_state{state="Downloading"} 1.0' in metrics
        expected = re.search(r"^noctaya_prewarm_bytes_expected (\S+)$", metrics, re.MULTILINE)
        assert expected is not None
        assert float(expected[1]) == now["bytesTotal"]
        assert get(f"{base}/healthz") == "ok\n"
        agent.process.send_signal(signal.SIGTERM)
        code, message, _ = agent.end()
    assert (code, message["reason"], message["state"]) == (1, "Interrupted", "Failed")
    assert message["bytesDone"] >= 1_000_000
    assert not target.exists()


@pytest.mark.parametrize(
    ("source", "code", "reason"),
    [
        ("hf://org/gated", 10, "NotAuthorised"),
        (f"{SOURCE}@nothing", 11, "NotFound"),
        ("hf://org/evil", 14, "Refused"),
        ("hf://org/liar", 13, "IntegrityFault"),
        ("pvc://claim", 2, "BadSettings"),
        ("nonsense", 2, "BadSettings"),
    ],
)
def test_a_failure_has_its_exit_code_and_its_reason(
    served: Served, hub: Hub, target: Path, tmp_path: Path, source: str, code: int, reason: str
) -> None:
    hub.create("org/gated", {"a": "a"}, gated=True, tokens=["t"])
    hub.create("org/evil", {"../a": "a"})
    hub.create("org/liar", {"liar.txt": "true"})
    hub.faults.add(Match(path="liar.txt"), Effect(flip_at=0))
    with Agent(tmp_path, *download(target, source), HF_ENDPOINT=served.url) as agent:
        found, message, logs = agent.end()
    assert (found, message["code"], message["reason"], message["state"]) == (code, code, reason, "Failed")
    assert message["message"]
    assert "Traceback" not in logs


def test_m2_the_deadline_has_its_exit_code(served: Served, hub: Hub, target: Path, tmp_path: Path) -> None:
    hub.faults.add(Match(route="cdn"), Effect(stall_after=0))
    env = {"HF_ENDPOINT": served.url, "NOCTAYA_PREWARM_DEADLINE": "3s"}
    with Agent(tmp_path, *download(target), **env) as agent:
        code, message, _ = agent.end()
    assert (code, message["reason"]) == (15, "DeadlineExceeded")


def test_m3_a_token_is_nowhere_to_be_seen(hub: Hub, target: Path, tmp_path: Path) -> None:
    hub.create("org/gated", {"a.safetensors": b"a" * 50_000, "b": "b"}, gated=True, tokens=["hf_s3kr1t"])
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "token").write_text("hf_s3kr1t")
    hub.faults.add(Match(route="cdn", calls={1}), Effect(status=500))
    with hub_beside(hub) as served:
        env = {
            "HF_ENDPOINT": served.url,
            "NOCTAYA_PREWARM_SECRET_DIR": str(secret),
            "NOCTAYA_PREWARM_LOG_LEVEL": "debug",
        }
        with Agent(tmp_path, *download(target, "hf://org/gated"), **env) as agent:
            code, message, logs = agent.end()
    assert code == 0
    for text in (logs, json.dumps(message), (target / ".noctaya-ready").read_text()):
        assert "s3kr1t" not in text
        assert "Signature=" not in text


@pytest.mark.parametrize(
    ("env", "arguments", "named"),
    [
        ({"NOCTAYA_PREWARM_CONNECTIONS": "many"}, download(Path("/x")), "NOCTAYA_PREWARM_CONNECTIONS"),
        ({"NOCTAYA_PREWARM_RANGE_SIZE": "64Zi"}, download(Path("/x")), "NOCTAYA_PREWARM_RANGE_SIZE"),
        ({"NOCTAYA_PREWARM_ENDPOINT": "hub.example"}, download(Path("/x")), "NOCTAYA_PREWARM_ENDPOINT"),
        ({}, ["download", "--source", "hf://a/b", "--target", "relative"], "absolute path"),
        ({}, ["download", "--source", "hf://a/b", "--target", "/a/../b"], "absolute path"),
        ({}, ["wait", "--marker", "/x", "--timeout", "1d"], "timeout"),
        ({}, ["verify"], "--marker"),
        ({}, [], "COMMAND"),
    ],
)
def test_bad_arguments_and_settings_end_with_2_and_are_named(
    tmp_path: Path, env: dict[str, str], arguments: list[str], named: str
) -> None:
    with Agent(tmp_path, *arguments, **env) as agent:
        code, _, output = agent.end()
    assert code == 2
    assert named in output
    assert "Traceback" not in output


def test_wait_says_what_it_waits_for_and_why_it_gave_up(tmp_path: Path) -> None:
    marker = tmp_path / "ready"
    with Agent(tmp_path, "wait", "--marker", str(marker), "--timeout", "200ms") as agent:
        assert str(marker) in agent.until("waiting: there is no marker")["msg"]
        code, message, _ = agent.end()
    assert (code, message["reason"]) == (15, "DeadlineExceeded")


def test_wait_leaves_at_once_when_it_is_told_to(tmp_path: Path) -> None:
    with Agent(tmp_path, "wait", "--marker", str(tmp_path / "ready")) as agent:
        agent.until("waiting")
        agent.process.send_signal(signal.SIGTERM)
        code, message, _ = agent.end(timeout=30)
    assert (code, message["reason"]) == (1, "Interrupted")


def test_an_address_in_use_costs_progress_and_not_the_model(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    address = served.url.removeprefix("http://")
    env = {"HF_ENDPOINT": served.url, "NOCTAYA_PREWARM_LISTEN_ADDR": address}
    with Agent(tmp_path, *download(target), **env) as agent:
        agent.until("progress is not served")
        code, _, _ = agent.end()
    assert code == 0
    assert_whole(target, hub)


def test_the_version_is_told() -> None:
    done = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True, check=True, env={})
    assert done.stdout.startswith("noctaya-prewarm 0.")


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        text: str = answer.read().decode()
    return text
