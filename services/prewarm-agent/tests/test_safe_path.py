"""Which names of a source are written, and which never (M4)."""

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from noctaya_prewarm.errors import Refused
from noctaya_prewarm.safe_path import safe_path, shown, unique_paths


@pytest.mark.parametrize(
    "text",
    [
        "config.json",
        "a/b/c.txt",
        ".gitattributes",
        "..a",
        "a..",
        "...",
        "with space.txt",
        "ünïcode/模型.bin",
        "x" * 255,
        "-rf",
        "~",
        "$HOME",
    ],
)
def test_ordinary_names_stay_as_they_are(text: str) -> None:
    assert str(safe_path(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "/etc/passwd",
        "//x",
        ".",
        "..",
        "../x",
        "a/../b",
        "a/..",
        "a/./b",
        "./a",
        "a//b",
        "a/",
        "a\0b",
        "a\nb",
        "a\x7fb",
        "a\x85b",
        "a\\b",
        "..\\x",
        "C:\\x",
        "exe\u202ejson.bin",
        "a\u2028b",
        "\ud800",
        "x" * 256,
        "x" * 300,
        "é" * 128,
        "/".join(["d" * 100] * 11),
        "/".join(["d"] * 33),
        ".noctaya-ready",
        "sub/.noctaya-ready",
        ".noctaya-0.tmp",
    ],
)
def test_m4_odd_names_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="title of layer 3"):
        safe_path(text, what="title of layer 3")


def test_the_message_shows_the_name_escaped_and_short() -> None:
    with pytest.raises(Refused) as caught:
        safe_path("a\n\x1b[31m" + "x" * 5000)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 300
    assert shown("ä") == "'\\xe4'"


@given(st.text(max_size=40) | st.from_regex(r"[a./\\ ]{0,30}"))
@example("a/b/../../..")
def test_m4_what_is_accepted_never_leaves_its_directory(text: str) -> None:
    try:
        path = safe_path(text)
    except Refused:
        return
    assert os.path.normpath(f"/target/{text}") == f"/target/{path}"
    assert str(path) == text
    assert path.parts and ".." not in path.parts


@given(st.lists(st.sampled_from(["a", "a/b", "a/b/c", "b", "b/a", "A"]), max_size=6))
def test_m4_paths_that_are_accepted_together_can_all_be_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    paths = [PurePosixPath(text) for text in texts]
    clash = len(set(texts)) < len(texts) or any(
        other != one and PurePosixPath(one) in PurePosixPath(other).parents
        for one in texts
        for other in texts
    )
    if clash:
        with pytest.raises(Refused):
            unique_paths(paths)
        return
    unique_paths(paths)
    root = tmp_path_factory.mktemp("tree")
    for path in paths:
        target = Path(root / path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(exist_ok=False)
