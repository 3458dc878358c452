"""Tests that need a toolchain beyond Python are named when it is missing, and fail under CI.

`@pytest.mark.toolchain("node", "npm")` says which programs a test needs on PATH. Without them the test is not
run and its name is printed at the end; with `CI=true` it fails, so that no release rests on tests nobody ran.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

NOT_RUN = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "toolchain(*programs): needs these programs on PATH")
    config.stash[NOT_RUN] = []


def missing_programs(item: pytest.Item) -> list[str]:
    return [
        program
        for marker in item.iter_markers("toolchain")
        for program in marker.args
        if shutil.which(program) is None
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("CI", "").lower() == "true":
        return
    absent = [item for item in items if missing_programs(item)]
    if not absent:
        return
    items[:] = [item for item in items if item not in absent]
    config.hook.pytest_deselected(items=absent)
    config.stash[NOT_RUN] = [f"{item.nodeid} (no {', '.join(missing_programs(item))})" for item in absent]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if absent := missing_programs(item):
        pytest.fail(f"under CI every judge must be there; missing: {', '.join(absent)}", pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["not_run"] = session.config.stash[NOT_RUN]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Called in xdist's controller; every worker collected the same list."""
    node.config.stash[NOT_RUN] = getattr(node, "workeroutput", {}).get("not_run", [])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    names = config.stash[NOT_RUN]
    if names:
        terminalreporter.section(f"{len(names)} tests NOT RUN: toolchain missing", yellow=True)
        for name in names:
            terminalreporter.line(name)
