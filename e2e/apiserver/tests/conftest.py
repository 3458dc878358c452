"""One control plane for the whole run, one operator in it, and a namespace of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from noctaya_apiserver import ApiClient, ControlPlane
from noctaya_apiserver.client import Object
from noctaya_apiserver.noctaya import OPERATOR, new_namespace, noctaya_crds, noctaya_plane
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World, runtime, stand_ins

GROUPS = ("workshop", "bare", "plane")
"""Fixtures that are expensive: tests that share one run in one process, whatever runs beside it."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Divide the tests among the processes of pytest-xdist (`--dist loadgroup`) by what they share."""
    for item in items:
        used = getattr(item, "fixturenames", ())
        group = next((name for name in GROUPS if name in used), item.path.stem)
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def crds() -> list[Object]:
    """Our CRDs."""
    return noctaya_crds()


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane that tests share; nobody stops or restarts it."""
    folder = tmp_path_factory.mktemp("plane")
    with noctaya_plane(folder) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> ApiClient:
    """The administrator's client."""
    return plane.client()


@pytest.fixture
def namespace(api: ApiClient) -> str:
    """A new namespace. It is left behind: deleting one costs the server some hundred requests."""
    return new_namespace(api)


@pytest.fixture(scope="session")
def operator(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """The operator of the shared control plane, with one gateway a service; it acts in every namespace."""
    folder = tmp_path_factory.mktemp("operator")
    process = OperatorProcess(plane.kubeconfig(OPERATOR), folder)
    plane.client().apply(runtime())
    with stand_ins(plane):
        process.start()
        yield process
        code = process.stop()
    assert code == 0, process.child.last_words(20)


@pytest.fixture
def world(api: ApiClient, namespace: str, operator: OperatorProcess) -> World:
    """A namespace of the shared control plane with the operator at work."""
    operator.child.check_running()
    return World(api, namespace)


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A second control plane, in which no operator runs but those that a test starts for its namespace."""
    with noctaya_plane(tmp_path_factory.mktemp("workshop")) as plane:
        plane.client().apply(runtime())
        with stand_ins(plane):
            yield plane


@pytest.fixture
def bench(workshop: ControlPlane) -> World:
    """A namespace of the workshop, without an operator."""
    api = workshop.client()
    return World(api, new_namespace(api))


StartOperator = Callable[..., OperatorProcess]


@pytest.fixture
def start_operator(workshop: ControlPlane, bench: World, tmp_path: Path) -> Iterator[StartOperator]:
    """Starts operators that work in the test's namespace alone; what still runs afterwards is stopped."""
    started: list[OperatorProcess] = []

    def start(*flags: str, ready: bool = True) -> OperatorProcess:
        process = OperatorProcess(
            workshop.kubeconfig(OPERATOR),
            tmp_path,
            f"--namespaces={bench.namespace}",
            *flags,
            name=f"operator-{len(started)}",
        )
        started.append(process)
        return process.start(ready=ready)

    yield start
    for process in started:
        if process.child.running:
            process.stop()
