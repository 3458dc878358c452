"""No link of any page leads nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_docs.links import Link, fault_of, links_of, slug_of
from noctaya_docs.pages import markdown_files


def test_every_link_of_every_page_leads_to_a_file_and_a_heading() -> None:
    links = [link for page in markdown_files() for link in links_of(page)]
    assert len(links) > 100
    assert [fault for link in links if (fault := fault_of(link))] == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# One `x`, two\n\n## Twice\n\n## Twice\n\n```sh\n## no\n```\n")
    return tmp_path


@pytest.mark.parametrize("target", ["a.md", "a.md#one-x-two", "a.md#twice-1", "../docs", "../docs/a.md"])
def test_a_link_that_leads_somewhere_is_taken(root: Path, target: str) -> None:
    assert fault_of(Link(page=Path("docs/b.md"), line=1, target=target), root) == ""


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("b.md", "there is no docs/b.md"),
        ("a.md#three", "no heading for #three"),
        ("a.md#no", "no heading for #no"),
        ("a.md#twice-2", "no heading"),
        ("../../x", "leads out of the repository"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(root: Path, target: str, fault: str) -> None:
    told = fault_of(Link(page=Path("docs/b.md"), line=7, target=target), root)
    assert told.startswith(f"docs/b.md:7: {target}")
    assert fault in told


def test_links_in_code_and_to_other_hosts_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("`[a](b)` [c](https://x.example) [d](mailto:e) ![f](g.svg) [h](#i)\n")
    assert [each.target for each in links_of(Path("p.md"), tmp_path)] == ["g.svg", "#i"]


def test_a_heading_s_anchor_is_that_of_forges() -> None:
    assert slug_of("## What `noctaya run` does, and why?") == "what-noctaya-run-does-and-why"
