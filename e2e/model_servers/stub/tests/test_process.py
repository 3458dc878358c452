"""The stub as a container starts and stops it."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from noctaya_model_stub.settings import SettingError, read_settings


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "noctaya_model_stub", *arguments],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_arguments_of_an_engine_are_accepted_and_sigterm_ends_it_at_once() -> None:
    arguments = ["/models/m", "--served-model-name", "org/m", "--max-model-len", "2048", "--port", "0"]
    with start(*arguments) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"org/m on port (\d+)", said)
        assert found, said
        models = httpx.get(f"http://127.0.0.1:{found[1]}/v1/models", trust_env=False).json()
        assert models["data"][0]["id"] == "org/m"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.mark.parametrize("name", ["STUB_TOKEN_DELAY", "STUB_STARTUP_DELAY", "STUB_TOKEN_COUNT"])
def test_a_setting_that_can_not_be_used_is_named_and_ends_the_start(name: str) -> None:
    with start("--port", "0", **{name: "soon"}) as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert name in said


@pytest.mark.parametrize("port", ["-1", "65536", "x", ""])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(SettingError, match="--port"):
        read_settings(["--port", port], {})
