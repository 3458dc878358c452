"""One cluster for all scenarios, a namespace for each; a report folder when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from noctaya_cluster import ClusterError, choose_provider
from noctaya_scenarios import durations
from noctaya_scenarios.failures import Failure, load_average, write
from noctaya_scenarios.lab import Lab, open_lab, state_folder
from noctaya_scenarios.scene import Scene
from noctaya_scenarios.turns import Turns

# looptime asks for the current loop before tests that have none as well, which would make one nobody closes.
asyncio.set_event_loop(None)

CLUSTER_TIMEOUT = 900
"""With what a scenario waits for the turns of others."""
SCENE = pytest.StashKey[Scene]()
LAB = pytest.StashKey[Lab]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("scenarios")
    group.addoption("--cluster", default=None, help="provider: host, kind, existing; detected if not given")
    group.addoption("--yes-use-this-cluster", action="store_true", help="confirms --cluster existing")
    group.addoption("--gateways", type=int, default=2, help="gateways of each service")
    group.addoption(
        "--as-installed", action="store_true", help="take cluster, images and release as they are"
    )
    group.addoption("--reports", type=Path, default=None, help="folder for reports of failed scenarios")


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "first: before all others, alone: it installs and removes what the others rely on",
        "last: after all others, alone: it disturbs the whole cluster",
        "any_gateways: runs with one gateway and with two",
        "one_gateway: makes sense with one gateway only",
        "long: takes about a minute or more, so it begins before the others",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(CLUSTER_TIMEOUT))
    # A long one that begins last is what everybody waits for in the end.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def lab(pytestconfig: pytest.Config) -> Iterator[Lab]:
    cluster = choose_provider(
        pytestconfig.getoption("--cluster"), confirmed=pytestconfig.getoption("--yes-use-this-cluster")
    )
    with open_lab(
        cluster,
        state_folder(),
        gateways=pytestconfig.getoption("--gateways"),
        as_installed=pytestconfig.getoption("--as-installed"),
    ) as lab:
        pytestconfig.stash[LAB] = lab
        yield lab


@pytest.fixture
def turns(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Turns]:
    with lab.turns() as turns:
        yield turns
    told = {durations.WAITED: turns.waited, durations.ALONE: turns.lonely}
    request.node.user_properties.extend((name, f"{seconds:.1f}") for name, seconds in told.items())


@pytest.fixture
def scene(lab: Lab, turns: Turns, request: pytest.FixtureRequest) -> Iterator[Scene]:
    name = request.node.originalname.removeprefix("test_")
    with lab.scene(name) as scene:
        request.node.stash[SCENE] = scene
        yield scene


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    folder = item.config.getoption("--reports")
    if report.failed and folder is not None:
        target = folder / item.name
        write(target, failure_of(report), text=report.longreprtext)  # first: logs take a while
        if LAB in item.config.stash:
            add_diagnostics(item, report, target)
    return report


def failure_of(report: pytest.TestReport) -> Failure:
    crash = getattr(report.longrepr, "reprcrash", None)
    return Failure(
        scenario=report.nodeid,
        stage=report.when,
        where=f"{crash.path}:{crash.lineno}" if crash else "",
        message=crash.message if crash else report.longreprtext,
        seconds=report.duration,
        ended=datetime.now(UTC).isoformat(timespec="milliseconds"),
        load=load_average(),
    )


def add_diagnostics(item: pytest.Item, report: pytest.TestReport, target: Path) -> None:
    lab, scene = item.config.stash[LAB], item.stash.get(SCENE, None)
    try:
        lab.cluster.diagnostics(target, namespaces=(scene.namespace,) if scene else ("noctaya-system",))
    except (ClusterError, OSError) as error:
        report.sections.append(("report", f"could not be written: {error}"))
    else:
        report.sections.append(("report", f"{target}: objects, events and logs of every component"))
