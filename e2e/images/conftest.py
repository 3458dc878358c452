"""Images on an engine, started by testcontainers with nothing but what they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from noctaya_demo.weights import FOLDER, ensure_weights, models_directory
from noctaya_engine import Built, Engine, images
from noctaya_engine.archive import Archive, opened
from noctaya_engine.engine import choose_kind
from noctaya_engine.started import Start, Started
from noctaya_engine.trials import FILES, MODELS, TRIALS, Trial
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

TIMEOUT = 900

#: What a restricted Pod gets, and no network but loopback.
NOTHING = {
    "network_mode": "none",
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
}

testcontainers_config.ryuk_disabled = (
    True  # its image needs a registry; our engine takes all with it when it ends
)


@pytest.fixture(scope="session")
def built() -> dict[str, Built]:
    """Every image as files."""
    return images.ensure()


@pytest.fixture(scope="session")
def bare_engine() -> Iterator[Engine]:
    """An engine; Docker clients of this process talk to it."""
    with Engine.running() as engine, pytest.MonkeyPatch.context() as patch:
        for name, value in engine.environment.items():
            patch.setenv(name, value)
        yield engine


@pytest.fixture(scope="session")
def engine(bare_engine: Engine, built: dict[str, Built]) -> Engine:
    """An engine that has every image."""
    for image in built.values():
        with opened(image.tar) as archive:
            identity = archive.identity
        there = bare_engine.has(image.reference)
        if not there or identity not in bare_engine.docker("inspect", "--format={{.Id}}", image.reference):
            bare_engine.load(image.tar)
    return bare_engine


@pytest.fixture(params=TRIALS, ids=lambda trial: trial.image)
def trial(request: pytest.FixtureRequest) -> Trial:
    """Each image under trial."""
    chosen: Trial = request.param
    return chosen


@pytest.fixture
def archive(trial: Trial, built: dict[str, Built]) -> Iterator[Archive]:
    """The files of the image under trial."""
    with opened(built[trial.image].tar) as archive:
        yield archive


@pytest.fixture(scope="session")
def weights() -> Path:
    """A folder with one real model."""
    models = models_directory()
    models.mkdir(parents=True, exist_ok=True)
    ensure_weights(models)
    return models / FOLDER


@pytest.fixture
def start(
    engine: Engine, built: dict[str, Built], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Start]:
    """Starts containers and removes them at the end of the test."""
    with ExitStack() as containers:

        def run(
            trial: Trial,
            *,
            env: dict[str, str] | None = None,
            arguments: tuple[str, ...] | None = None,
            user: str = "",
        ) -> Started:
            container = DockerContainer(built[trial.image].reference)
            container.with_command(list(trial.arguments if arguments is None else arguments))
            container.with_envs(**(dict(trial.env) if env is None else env))
            if trial.files:
                container.with_volume_mapping(str(_files(tmp_path, trial)), FILES, "ro")
            if trial.needs_weights:
                container.with_volume_mapping(str(request.getfixturevalue("weights")), MODELS, "ro")
            if trial.writable:
                container.with_tmpfs_mount(trial.writable, "mode=1777")
            container.with_kwargs(**NOTHING, **({"user": user} if user else {}))
            return Started(containers.enter_context(container).get_wrapped_container(), trial)

        yield run


def _files(folder: Path, trial: Trial) -> Path:
    place = folder / "files"
    place.mkdir(exist_ok=True)
    for name, content in trial.files.items():
        (place / name).write_text(content)
        (place / name).chmod(0o644)
    place.chmod(0o755)
    return place


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "private_engine: is about the private engine or the base images it makes"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whichever test comes first waits for the images of a tree that has changed.

    On the machine's own Docker, what is about the private engine is not selected, and pytest says so.
    """
    for item in items:
        item.add_marker(pytest.mark.timeout(TIMEOUT))
    if choose_kind() == "system":
        left_out = [item for item in items if item.get_closest_marker("private_engine")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
