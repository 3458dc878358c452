"""No command without proof, no row without a command, no proof that isn't there."""

from __future__ import annotations

import configparser

import pytest
from noctaya_docs.commands import all_commands
from noctaya_docs.pages import REPOSITORY, command_pages
from noctaya_docs.table import ALONE, WAYS
from noctaya_docs.ways import Place

TESTS = sorted({way.why for ways in WAYS.values() for way in ways.values() if way.place is Place.TEST})


def test_every_command_of_every_page_has_a_row() -> None:
    missing = [
        f"{each.where}: {each.text}"
        for each in all_commands()
        if each.text not in WAYS.get(str(each.page), {})
    ]
    assert missing == [], "write into noctaya_docs.table how each is proven"


def test_every_row_is_a_command_of_its_page() -> None:
    there = {(str(each.page), each.text) for each in all_commands()}
    stale = [(page, text) for page, ways in WAYS.items() for text in ways if (page, text) not in there]
    assert stale == []


def test_every_page_with_an_api_server_of_its_own_is_there() -> None:
    assert [page for page in ALONE if page not in {str(each) for each in command_pages()}] == []


def test_what_is_not_run_says_why() -> None:
    silent = [
        text
        for ways in WAYS.values()
        for text, way in ways.items()
        if way.place in {Place.OUTSIDE, Place.TEST} and not way.why
    ]
    assert silent == []


@pytest.mark.parametrize("proof", TESTS)
def test_a_test_that_is_named_exists(proof: str) -> None:
    if proof.startswith("tox:"):
        tox = configparser.ConfigParser(interpolation=None)
        tox.read(REPOSITORY / "tox.ini", encoding="utf-8")
        assert f"testenv:{proof.removeprefix('tox:')}" in tox
        return
    path, _, name = proof.partition("::")
    assert (REPOSITORY / path).exists()
    assert f"def {name}" in (REPOSITORY / path).read_text(encoding="utf-8")
