"""The commands of the documentation, run: in a checkout, and page by page on a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_docs.commands import commands_of
from noctaya_docs.stage import Shell, Stage
from noctaya_docs.table import ALONE, NAMES, WAYS
from noctaya_docs.ways import Place, Way, api

PAGE_SECONDS = 600
"""For a page, with the API server it may be the first to want; the longest takes 20 s on two idle cores."""


def placed(place: Place) -> list[tuple[str, str, Way]]:
    return [
        (page, text, way) for page, ways in WAYS.items() for text, way in ways.items() if way.place is place
    ]


@pytest.mark.parametrize(("page", "text"), [(page, text) for page, text, _ in placed(Place.HERE)])
def test_a_command_for_a_checkout_works(page: str, text: str, tmp_path: Path) -> None:
    Shell(tmp_path).prove(text, WAYS[page][text])


def run_page(stage: Stage, page: str) -> None:
    """The commands of a page that want an API server, in their order."""
    for command in commands_of(Path(page)):
        way = WAYS[page][command.text]
        if way.place is Place.API:
            stage.prove(command.text, way)


@pytest.mark.timeout(PAGE_SECONDS)
@pytest.mark.parametrize("page", ALONE)
def test_the_commands_of_a_page_work_in_their_order(page: str, tmp_path: Path) -> None:
    with Stage(tmp_path, names=NAMES) as stage:
        for text in ALONE[page]:
            stage.prove(text, api())
        run_page(stage, page)


@pytest.mark.timeout(PAGE_SECONDS)
@pytest.mark.parametrize("page", sorted({page for page, _, _ in placed(Place.API)} - set(ALONE)))
def test_the_commands_of_a_page_work_where_noctaya_is_installed(page: str, shared_stage: Stage) -> None:
    run_page(shared_stage, page)
