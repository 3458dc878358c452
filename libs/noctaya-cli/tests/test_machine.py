"""Directories and files of a run, and how the gateway is started."""

import sys
from pathlib import Path

import pytest
from noctaya_cli.child import base_environment
from noctaya_cli.gateway_plan import GatewayMissing, find_gateway, plan_gateway
from noctaya_cli.machine import KEPT_RUNS, make_run_directory, state_directory, write_atomically
from noctaya_cli.plan import ContainerPlan, EndpointPlan, ServicePlan
from noctaya_cli.scaling import ScalingPolicy


def test_runs_keep_their_logs_and_only_the_newest_stay(tmp_path: Path) -> None:
    root = tmp_path / "noctaya"
    for number in range(KEPT_RUNS + 5):
        directory = make_run_directory(root, stamp=f"{number:03d}")
        (directory / "pid").write_text("999999999")
    kept = sorted(path.name for path in root.iterdir())
    assert kept == [f"run-{number:03d}" for number in range(5, KEPT_RUNS + 5)]
    assert directory.stat().st_mode & 0o077 == 0


def test_the_logs_of_a_run_that_goes_on_are_never_removed(tmp_path: Path) -> None:
    alive = make_run_directory(tmp_path, stamp="000")
    for number in range(1, KEPT_RUNS + 5):
        (make_run_directory(tmp_path, stamp=f"{number:03d}") / "pid").write_text("999999999")
    assert alive.exists()


def test_the_state_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_directory() == tmp_path / "noctaya"
    monkeypatch.setenv("XDG_STATE_HOME", "")
    assert state_directory() == Path.home() / ".local" / "state" / "noctaya"


def test_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "one")
    before = path.stat().st_ino
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_ino != before
    assert list(tmp_path.iterdir()) == [path]


def test_children_get_no_stray_settings_and_find_programs_beside_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NOCTAYA_MAX_QUEUE", "1")
    monkeypatch.setenv("OTHER", "kept")
    environment = base_environment(Path("/venv/bin"))
    assert "NOCTAYA_MAX_QUEUE" not in environment
    assert environment["OTHER"] == "kept"
    assert environment["PATH"].endswith(":/venv/bin")


def test_the_gateway_beside_the_interpreter_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GatewayMissing, match="noctaya-gateway is not installed"):
        find_gateway()
    (tmp_path / "noctaya-gateway").touch()
    assert find_gateway() == tmp_path / "noctaya-gateway"


def test_the_gateway_is_told_what_the_manifest_says(tmp_path: Path) -> None:
    service = ServicePlan(
        name="tiny",
        namespace="default",
        runtime="engine",
        model="pvc://models/tiny",
        container=ContainerPlan(command=("model",)),
        endpoint=EndpointPlan(
            max_queue=5,
            cold_start_mode="reject",
            optional={"NOCTAYA_HEARTBEATS": "false"},
            heartbeat_interval=0.2,
            activation_timeout=90,
            drain_timeout=30,
            health_path="/ready",
            api_key_file=tmp_path / "key$1",
        ),
        scaling=ScalingPolicy(minimum=0, maximum=1, target=10, stabilization=5),
    )
    plan = plan_gateway(
        service,
        program=Path("/bin/noctaya-gateway"),
        listen=("::1", 8080),
        scaler_port=9999,
        endpoints_file=tmp_path / "tiny.endpoints",
        failure_file=tmp_path / "tiny.failure",
        overrides={"NOCTAYA_READY_GRACE": "2s"},
    )
    assert plan.command == ("/bin/noctaya-gateway",)
    assert plan.grace == 40
    assert plan.process_environment(port=8080, base={}) == {
        "NOCTAYA_BACKEND_URL": "http://localhost",
        "NOCTAYA_BACKEND_ENDPOINTS": (tmp_path / "tiny.endpoints").as_uri(),
        "NOCTAYA_LISTEN_ADDR": "[::1]:8080",
        "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:9999",
        "NOCTAYA_SERVICE_NAME": "tiny",
        "NOCTAYA_HEALTH_PATH": "/ready",
        "NOCTAYA_MAX_QUEUE": "5",
        "NOCTAYA_ACTIVATION_TIMEOUT": "1m30s",
        "NOCTAYA_COLDSTART_MODE": "reject",
        "NOCTAYA_HEARTBEATS": "false",
        "NOCTAYA_HEARTBEAT_INTERVAL": "200ms",
        "NOCTAYA_DRAIN_TIMEOUT": "30s",
        "NOCTAYA_LAME_DUCK": "0s",
        "NOCTAYA_ACTIVATION_FAILURE_FILE": str(tmp_path / "tiny.failure"),
        "NOCTAYA_CLIENT_API_KEY_FILE": str(tmp_path / "key$1"),
        "NOCTAYA_READY_GRACE": "2s",
        "PORT": "8080",
    }
