"""Options that can't work are one sentence, before the engine is even imported."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from noctaya_llamacpp.options import OptionError, parse_options


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF and more")
    return path


def refusal(*arguments: str | Path) -> str:
    with pytest.raises(OptionError) as caught:
        parse_options([str(argument) for argument in arguments])
    return str(caught.value)


def test_defaults(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMACPP_HOST", raising=False)
    options = parse_options(["--model", str(model), "--port", "0"])
    assert (options.alias, options.host, options.parallel, options.context) == ("tiny", "127.0.0.1", 4, 2048)
    assert options.threads >= 1


def test_an_image_can_set_the_address(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMACPP_HOST", "0.0.0.0")
    assert parse_options(["--model", str(model), "--port", "0"]).host == "0.0.0.0"


def test_a_directory_with_one_model_is_that_model(model: Path) -> None:
    assert parse_options(["--model", str(model.parent), "--port", "0"]).model == model
    (model.parent / "other.gguf").touch()
    assert "2 .gguf files" in refusal("--model", model.parent)


def test_files_that_are_no_model_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    assert "can't be read: No such file" in refusal("--model", tmp_path / "none")
    assert "is not a GGUF file" in refusal("--model", tmp_path / "text")


@pytest.mark.parametrize("option", ["--port", "--parallel", "--ctx", "--threads"])
def test_numbers_out_of_range_are_refused(model: Path, option: str) -> None:
    assert f"{option} must be within" in refusal("--model", model, option, "-1")


def test_a_port_in_use_is_refused(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"can't listen on 127.0.0.1:{port}" in refusal("--model", model, "--port", str(port))


def test_a_broken_model_is_one_last_line_and_exit_code_2(model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "noctaya_llamacpp.main", "--model", str(model), "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"noctaya-llamacpp: the engine can't load {model}: ")
