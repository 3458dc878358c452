"""One control plane for the whole run, one operator in it, and a namespace of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from noctaya_apiserver import ApiClient, ControlPlane, User, keda_crds, load_objects
from noctaya_apiserver.client import Object
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World, runtime, stand_ins

ROOT = Path(__file__).parents[3]
CRDS = load_objects(*sorted((ROOT / "charts" / "operator" / "crds").glob("*.yaml")))
RIGHTS = load_objects(Path(__file__).with_name("operator_rights.yaml"))
OPERATOR_USER = "operator"

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def crds() -> list[Object]:
    """Our CRDs."""
    return CRDS


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane that tests share; nobody stops or restarts it."""
    folder = tmp_path_factory.mktemp("plane")
    with new_plane(folder) as plane:
        yield plane


def new_plane(folder: Path, *, keda: bool = True) -> ControlPlane:
    """A control plane with our CRDs and the operator's rights, not started."""
    crds = [*CRDS, *(keda_crds() if keda else [])]
    return ControlPlane(folder, users=[User(OPERATOR_USER)], objects=[*crds, *RIGHTS])


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> ApiClient:
    """The administrator's client."""
    return plane.client()


@pytest.fixture
def namespace(api: ApiClient) -> str:
    """A new namespace. It is left behind: deleting one costs the server some hundred requests."""
    return new_namespace(api)


def new_namespace(api: ApiClient) -> str:
    """A namespace that no other test uses."""
    name = f"test-{next(_numbers)}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture(scope="session")
def operator(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """The operator of the shared control plane, with one gateway a service; it acts in every namespace."""
    folder = tmp_path_factory.mktemp("operator")
    process = OperatorProcess(plane.kubeconfig(OPERATOR_USER), folder)
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
    with new_plane(tmp_path_factory.mktemp("workshop")) as plane:
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
            workshop.kubeconfig(OPERATOR_USER),
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
