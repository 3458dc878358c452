"""One API server with the release installed, for the tests that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from noctaya_docs.stage import Stage
from noctaya_docs.table import NAMES, TOGETHER
from noctaya_docs.ways import api

EXPENSIVE = ("shared_stage", "stage", "site")
"""Fixtures whose tests run in one process of pytest-xdist (`--dist loadgroup`)."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in set(EXPENSIVE).intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("shared"), names=NAMES) as stage:
        for text in TOGETHER:
            stage.prove(text, api())
        yield stage
