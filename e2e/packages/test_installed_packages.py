"""Each wheel, built and installed alone, starts with only what it declares and drags no foreign weight in."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UV = (sys.executable, "-m", "uv")
Installed = tuple[str, Path]

#: distribution -> (its folder, console script, what must not come along)
PACKAGES = {
    "noctaya-gateway": (
        "services/gateway",
        "noctaya-gateway",
        {"kubernetes", "rich", "pyyaml", "grpcio-tools"},
    ),
    "noctaya-aggregate-scaler": (
        "services/aggregate-scaler",
        "noctaya-aggregate-scaler",
        {"kubernetes", "rich", "pyyaml", "httpx"},
    ),
    "noctaya-operator": ("services/operator", "noctaya-operator", {"rich", "grpcio-tools", "cryptography"}),
    "noctaya-prewarm": (
        "services/prewarm-agent",
        "noctaya-prewarm",
        {"kubernetes", "rich", "fastapi", "grpcio", "huggingface-hub", "modelscope-hub", "botocore"},
    ),
    "noctaya-cli": ("libs/noctaya-cli", "noctaya", {"kubernetes", "fastapi"}),
}

#: distribution -> (arguments, what must be named, exit code) of a start that can't work
REFUSED = {
    "noctaya-gateway": ((), "NOCTAYA_SCALER_LISTEN_ADDR", 1),
    "noctaya-aggregate-scaler": ((), "NOCTAYA_SCALER_LISTEN_ADDR", 1),
    "noctaya-operator": ((), "NOCTAYA_WORKERS", 1),
    "noctaya-prewarm": (("wait", "--marker", "/absent/.noctaya-ready"), "NOCTAYA_PREWARM_DEADLINE", 2),
    "noctaya-cli": (("validate", "absent.yaml"), "absent.yaml", 1),
}


def make_venv(venv: Path, wheels: Path, distribution: str) -> None:
    subprocess.run([*UV, "venv", "--quiet", "--python", sys.executable, str(venv)], check=True)
    target = (
        "--python",
        str(venv / "bin/python"),
        "--find-links",
        str(wheels),
        "-c",
        str(ROOT / "constraints.txt"),
    )
    subprocess.run([*UV, "pip", "install", "--quiet", *target, distribution], check=True)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of every distribution of this repository."""
    out = tmp_path_factory.mktemp("wheels")
    for folder in ("libs/noctaya-api", *(folder for folder, _, _ in PACKAGES.values())):
        subprocess.run(
            [*UV, "build", "--quiet", "--wheel", "--out-dir", str(out), str(ROOT / folder)], check=True
        )
    return out


@pytest.fixture(scope="module", params=PACKAGES)
def installed(
    request: pytest.FixtureRequest, wheels: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """A virtual environment that holds one distribution and what it declares."""
    name: str = request.param
    venv = tmp_path_factory.mktemp(name) / "venv"
    make_venv(venv, wheels, name)
    return name, venv


def distributions(venv: Path) -> set[str]:
    listing = [*UV, "pip", "list", "--quiet", "--format", "freeze", "--python", str(venv / "bin/python")]
    out = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    return {re.split(r"[=@ ]", line)[0].lower() for line in out.splitlines()}


def test_the_console_script_tells_its_version(installed: Installed) -> None:
    name, venv = installed
    script = venv / "bin" / PACKAGES[name][1]
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\b0\.5\.0\b", done.stdout)


def test_nothing_undeclared_or_foreign_is_installed(installed: Installed) -> None:
    name, venv = installed
    assert PACKAGES[name][2] & distributions(venv) == set()


def test_a_bad_start_is_refused_by_name(installed: Installed) -> None:
    name, venv = installed
    arguments, named, code = REFUSED[name]
    env = {**os.environ, "NOCTAYA_BACKEND_URL": "http://127.0.0.1:9", named: "nonsense"}
    command = [str(venv / "bin" / PACKAGES[name][1]), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert named in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_the_gateway_serves_and_leaves_cleanly(wheels: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    make_venv(venv, wheels, "noctaya-gateway")
    env = {
        **os.environ,
        "NOCTAYA_BACKEND_URL": "http://127.0.0.1:9",
        "NOCTAYA_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_LAME_DUCK": "0s",
    }
    command = [str(venv / "bin/noctaya-gateway")]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = (json.loads(line) for line in process.stderr)
            port = next(line["port"] for line in lines if line.get("listener") == "http")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
                assert answer.status == 200
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
