"""Commands are taken from a page as a shell would read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_docs.commands import commands_of, logical_lines
from noctaya_docs.pages import fences, prose


def lines(*given: str) -> list[str]:
    return [text for _, text in logical_lines(given) if text]


def test_comments_go_and_a_hash_in_a_word_stays() -> None:
    assert lines("a b   # why", "# alone", "c#d '# e'") == ["a b", "c#d '# e'"]


def test_a_continued_line_is_one_command() -> None:
    assert lines("helm install x \\", "    --wait", "next") == ["helm install x --wait", "next"]


def test_a_quote_goes_on_over_lines_as_it_is() -> None:
    assert lines("echo 'a  b", "  c' d") == ["echo 'a  b\n  c' d"]


@pytest.mark.parametrize("text", [("echo 'a",), ("echo \\",)])
def test_what_is_never_finished_is_refused(text: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="never finished"):
        lines(*text)


def test_only_blocks_of_commands_are_read_and_each_knows_its_line(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "# T\n\n```sh\none\n\ntwo\n```\n\n```yaml\nno: 1\n```\n\n```\nthree\n```\n"
    )
    found = list(commands_of(Path("page.md"), tmp_path))
    assert [(each.text, each.line) for each in found] == [("one", 4), ("two", 6), ("three", 14)]


def test_a_longer_fence_holds_a_shorter_one(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("````text\n```sh\nx\n```\n````\n")
    assert [(each.language, each.lines) for each in fences(Path("page.md"), tmp_path)] == [
        ("text", ("```sh", "x", "```"))
    ]


def test_a_block_that_is_never_closed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("a\n\n```sh\nx\n")
    with pytest.raises(ValueError, match=r"page\.md:3"):
        list(fences(Path("page.md"), tmp_path))


def test_prose_has_no_code_and_keeps_its_lines(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("see [a](b)\n```sh\n[c](d)\n```\nand `[e](f)` [g](h)\n")
    text = prose(Path("page.md"), tmp_path)
    assert "[a](b)" in text and "[g](h)" in text
    assert "[c]" not in text and "[e]" not in text
    assert len(text.splitlines()) == 5
