"""`noctaya validate` and the options, as a user types them."""

import subprocess
import sys
from pathlib import Path

import pytest
from noctaya_cli.main import app
from noctaya_cli.options import OptionError, parse_mapping, parse_settings
from typer.testing import CliRunner, Result

QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart"
SERVICE = """
apiVersion: serving.noctaya.io/v1alpha1
kind: LLMService
metadata: {name: tiny}
spec:
  model: {source: {uri: "pvc://models/tiny"}}
  runtime: RUNTIME
"""
RUNTIME = """
---
apiVersion: serving.noctaya.io/v1alpha1
kind: InferenceRuntime
metadata: {name: engine}
spec:
  vendor: cpu
  container: {image: example/model, args: ["ARGUMENT"], port: {}}
"""


def noctaya(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def manifest(directory: Path, text: str) -> Path:
    path = directory / "file.yaml"
    path.write_text(text)
    return path


def test_the_quickstart_is_valid() -> None:
    done = noctaya("validate", QUICKSTART)
    assert done.exit_code == 0, done.output
    assert "LLMService/smollm2: pvc://models/smollm2-135m-instruct-q4, 0 to 1 replicas" in done.stdout
    assert done.stderr == ""


def test_a_wrong_field_is_named_with_file_object_and_field(tmp_path: Path) -> None:
    path = manifest(tmp_path, SERVICE.replace("RUNTIME", "{name: engine}\n  scaling: {min: 2}"))
    done = noctaya("validate", path)
    assert done.exit_code == 1
    for part in (str(path), "LLMService/tiny", "spec.scaling", "min must not be greater than max"):
        assert part in done.stderr


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    text = SERVICE.replace("RUNTIME", "{}") + RUNTIME.replace("cpu", "unknown")
    done = noctaya("validate", manifest(tmp_path, text))
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 2


def test_a_service_without_its_runtime_is_fine_when_no_runtime_is_given(tmp_path: Path) -> None:
    done = noctaya("validate", manifest(tmp_path, SERVICE.replace("RUNTIME", "{name: elsewhere}")))
    assert done.exit_code == 0
    assert "runtime elsewhere (not among these files)" in done.stdout


@pytest.mark.parametrize(
    ("reference", "field"),
    [
        ("{name: elsewhere}", "spec.runtime.name"),
        ("{selector: {vendor: [nvidia]}}", "spec.runtime.selector.vendor"),
    ],
)
def test_a_runtime_that_is_not_among_the_given_ones_is_a_problem(
    tmp_path: Path, reference: str, field: str
) -> None:
    done = noctaya("validate", manifest(tmp_path, SERVICE.replace("RUNTIME", reference) + RUNTIME))
    assert done.exit_code == 1
    assert f"error: {tmp_path / 'file.yaml'}:2 LLMService/tiny: {field}: " in done.stderr


def test_arguments_that_can_not_be_rendered_are_a_problem(tmp_path: Path) -> None:
    text = SERVICE.replace("RUNTIME", "{name: engine}") + RUNTIME.replace("ARGUMENT", "{{ .Model.Size }}")
    done = noctaya("validate", manifest(tmp_path, text))
    assert done.exit_code == 1
    assert "spec.container.args[0]" in done.stderr
    assert ".Model.Size" in done.stderr


def test_what_a_service_is_kept_is_read_and_what_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    def validate(text: str) -> Result:
        metadata = f'{{name: tiny, annotations: {{serving.noctaya.io/keep: "{text}"}}}}'
        service = SERVICE.replace("RUNTIME", "{name: engine}").replace("{name: tiny}", metadata)
        return noctaya("validate", manifest(tmp_path, service))

    assert "0 to 1 replicas, kept awake 2 until 2026-11-30T18:00:00Z" in (
        validate("awake 2 until 2026-11-30T19:00:00+01:00").stdout
    )
    refused = validate("for ever")
    assert refused.exit_code == 1
    assert (
        "LLMService/tiny: metadata.annotations[serving.noctaya.io/keep]: 'for ever' is neither"
        in refused.stderr
    )


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    done = noctaya("validate", tmp_path / "none.yaml")
    assert done.exit_code == 1
    assert "none.yaml" in done.stderr


def test_files_without_any_of_our_objects_are_a_problem(tmp_path: Path) -> None:
    done = noctaya("validate", manifest(tmp_path, "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"))
    assert done.exit_code == 1
    assert "no LLMService or InferenceRuntime" in done.stderr


def test_run_refuses_files_without_a_service(tmp_path: Path) -> None:
    done = noctaya("run", manifest(tmp_path, RUNTIME))
    assert done.exit_code == 1
    assert "no LLMService in" in done.stderr


def test_run_names_file_object_and_field_of_what_can_not_be_run(tmp_path: Path) -> None:
    path = manifest(tmp_path, SERVICE.replace("RUNTIME", "{name: engine}") + RUNTIME)
    done = noctaya("run", path)
    assert done.exit_code == 1
    assert done.stderr.startswith(
        f"error: {path}:2 LLMService/tiny: spec.model.source.uri: say where the claim"
    )


def test_run_refuses_two_services_of_one_name(tmp_path: Path) -> None:
    one = SERVICE.replace("RUNTIME", "{name: engine}")
    two = one.replace("{name: tiny}", "{name: tiny, namespace: other}")
    done = noctaya("run", manifest(tmp_path, f"{one}---{two}{RUNTIME}"))
    assert done.exit_code == 1
    assert "LLMService tiny exists in two namespaces" in done.stderr


def test_the_version_is_printed() -> None:
    assert noctaya("--version").stdout.startswith("noctaya ")


def test_mappings_are_parsed_and_checked(tmp_path: Path) -> None:
    assert parse_mapping([f"a={tmp_path}"], option="--volume") == {"a": tmp_path}
    for values, message in (
        (["a"], "expected NAME=DIR"),
        ([f"={tmp_path}"], "expected NAME=DIR"),
        ([f"a={tmp_path / 'none'}"], "is not a directory"),
        ([f"a={tmp_path}", f"a={tmp_path}"], "--volume a is given twice"),
    ):
        with pytest.raises(OptionError, match=message):
            parse_mapping(values, option="--volume")


def test_settings_for_the_gateway_must_be_ours() -> None:
    assert parse_settings(["NOCTAYA_LOG_LEVEL=debug"]) == {"NOCTAYA_LOG_LEVEL": "debug"}
    with pytest.raises(OptionError, match="expected NOCTAYA_NAME=VALUE"):
        parse_settings(["PATH=/"])


def test_a_setting_that_no_gateway_has_is_answered_with_the_one_that_is_meant() -> None:
    with pytest.raises(OptionError, match=r"NOCTAYA_MAXQUEUE: there is no such setting; NOCTAYA_MAX_QUEUE\?"):
        parse_settings(["NOCTAYA_MAXQUEUE=3"])
    with pytest.raises(OptionError, match="`noctaya-gateway --help` lists them"):
        parse_settings([f"NOCTAYA_{'Q' * 40}=3"])


def test_a_probe_of_a_port_that_the_container_does_not_have(tmp_path: Path) -> None:
    probe = "  health: {readiness: {httpGet: {path: /, port: metrics}}}\n"
    done = noctaya("validate", manifest(tmp_path, RUNTIME.replace("ARGUMENT", "x") + probe))
    assert done.exit_code == 1
    assert "InferenceRuntime/engine: spec.health: a probe uses the unknown port 'metrics'" in done.stderr


def test_what_a_manifest_says_never_controls_the_terminal(tmp_path: Path) -> None:
    text = SERVICE.replace("RUNTIME", "{name: engine}") + RUNTIME.replace("ARGUMENT", "\\e[2J")
    done = noctaya("validate", manifest(tmp_path, text))
    assert done.exit_code == 0, done.output
    assert r"\x1b[2J" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        (">/dev/full", 1, "error: standard output: No space left on device"),
        (">&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
    ],
)
def test_standard_streams_that_take_nothing(streams: str, code: int, said: str) -> None:
    line = f'"$0" -m noctaya_cli validate "$1" {streams}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, str(QUICKSTART)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (code, said)
