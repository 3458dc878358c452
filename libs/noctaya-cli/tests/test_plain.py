"""Output where the encoding has no signs."""

import io
import subprocess
import sys

import pytest
from noctaya_cli.plain import allow_any_text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_signs_become_ascii_and_other_letters_question_marks(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    allow_any_text(stream)
    stream.write("✖ chat → 20 s █▎ 模")
    stream.flush()
    assert raw.getvalue().decode(encoding) == "x chat -> 20 s #| ?"


def test_a_stream_with_unicode_is_left_alone() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    allow_any_text(stream)
    assert stream.errors == "strict"


def test_a_command_ends_as_it_should_where_output_is_ascii() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "noctaya_cli", "validate", "fichier-é-✖.yaml"],
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"fichier-?-x.yaml" in done.stderr
