"""Diagrams are what is written for them, fit into their frames, and are shown somewhere."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from noctaya_docs import pictures
from noctaya_docs.diagrams import Arrow, Box, Boxes
from noctaya_docs.links import links_of
from noctaya_docs.pages import markdown_files

NAMES = sorted(pictures.PICTURES)


def test_the_committed_pictures_are_what_is_drawn() -> None:
    assert pictures.stale() == [], "python -m noctaya_docs pictures"


def test_a_changed_picture_is_found(tmp_path: Path) -> None:
    pictures.write(tmp_path)
    assert pictures.stale(tmp_path) == []
    (tmp_path / "parts.svg").write_text("<svg/>")
    (tmp_path / "trust.svg").unlink()
    assert pictures.stale(tmp_path) == ["parts.svg", "trust.svg"]


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_inside_the_frame(name: str) -> None:
    root = ET.fromstring(pictures.PICTURES[name].draw())
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for each in root.iter():
        for axis, limit in (
            ("x", width),
            ("x1", width),
            ("x2", width),
            ("y", height),
            ("y1", height),
            ("y2", height),
        ):
            assert 0 <= float(each.get(axis, 0)) <= limit, (each.tag, each.attrib)


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_shown_in_a_page(name: str) -> None:
    shown = {link.path for page in markdown_files() for link in links_of(page)}
    assert Path("docs/pictures") / f"{name}.svg" in shown


def test_an_arrow_ends_at_the_border_of_its_box() -> None:
    boxes = {"a": Box("a", "", 0, 0, 100, 40), "b": Box("b", "", 200, 0, 100, 40)}
    drawn = Boxes("t", 300, 40, boxes, (Arrow("a", "b"),)).draw()
    assert 'x1="100.0" y1="20.0" x2="195.0" y2="20.0"' in drawn
