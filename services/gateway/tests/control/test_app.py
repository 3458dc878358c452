from __future__ import annotations

import os
import subprocess
import sys

import pytest
from noctaya_gateway import __version__
from noctaya_gateway.app import describe_environment
from noctaya_gateway.settings import GatewaySettings


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NOCTAYA_")}
    return subprocess.run(
        [sys.executable, "-m", "noctaya_gateway.app", *arguments],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_version_is_printed() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"noctaya-gateway {__version__}\n")


def test_help_lists_every_setting_with_its_default() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in GatewaySettings.model_fields:
        assert f"NOCTAYA_{name.upper()} " in done.stdout


@pytest.mark.parametrize(
    ("variable", "default"),
    [
        ("BACKEND_URL", "required"),
        ("ACTIVATION_TIMEOUT", "5m0s"),
        ("PROBE_FAST_INTERVAL", "50ms"),
        ("HEARTBEATS", "true"),
        ("RELEASE_RATE", "200"),
        ("CLIENT_API_KEY_FILE", "unset"),
        ("GATEWAY_ID", "unset"),
    ],
)
def test_defaults_are_shown_as_one_would_write_them(variable: str, default: str) -> None:
    lines = describe_environment().splitlines()
    (line,) = [line for line in lines if line.split()[0] == f"NOCTAYA_{variable}"]
    assert line.split()[1] == default


def test_a_bad_setting_is_exit_1_with_one_line_naming_it() -> None:
    done = run(NOCTAYA_BACKEND_URL="http://backend", NOCTAYA_MAX_QUEUE="0")
    assert done.returncode == 1
    assert done.stderr.startswith("NOCTAYA_MAX_QUEUE: ")
    assert "Traceback" not in done.stderr
