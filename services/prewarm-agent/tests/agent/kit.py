"""A hub that runs beside the tests, and runs of the agent against it."""

import asyncio
import contextlib
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from noctaya_model_hub import Content, Hub, Pattern, Served, running_hub
from noctaya_prewarm.download import download
from noctaya_prewarm.marker import Marker, read_marker
from noctaya_prewarm.run import Run
from noctaya_prewarm.settings import AgentSettings

REPOSITORY = "org/model"
SOURCE = f"hf://{REPOSITORY}"
MIB = 2**20
WEIGHTS = Pattern(size=5 * MIB + 7, seed=7)
FILES: dict[str, Content | bytes | str] = {
    "config.json": b'{"model_type": "test"}\n',
    "tokenizer/vocab.txt": "a\nb\n",
    "model.safetensors": WEIGHTS,
    "empty.txt": b"",
}


@contextlib.contextmanager
def hub_beside(hub: Hub, **options: Any) -> Iterator[Served]:
    """Serve the hub from a thread of its own, so that the agent's blocking work can run in the test's."""
    ready, ended = threading.Event(), asyncio.Event()
    found: list[Served] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with running_hub(hub, **options) as served:
            found.append(served)
            ready.set()
            await ended.wait()
        # Connections that were just closed are told so in the next rounds of the loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="hub")
    thread.start()
    try:
        assert ready.wait(30)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        loop.close()


def settings(served: Served | None = None, **changes: Any) -> AgentSettings:
    """Settings for a quick test against the hub."""
    values: dict[str, Any] = {
        "listen_addr": "127.0.0.1:0",
        "endpoint": served.url if served is not None else "",
        "range_size": MIB,
        "stall_timeout": 2.0,
        "max_backoff": 0.05,
        "retry_limit": 30.0,
        "deadline": 100.0,
        "disk_margin": 0,
        **changes,
    }
    return AgentSettings(**values)


def fetch(served: Served, target: Path, *, source: str = SOURCE, **changes: Any) -> Run:
    """One download in this thread; `changes` are settings, or include, exclude, marker and prune."""
    arguments = {
        name: changes.pop(name) for name in ("include", "exclude", "marker", "prune") if name in changes
    }
    run = Run(settings(served, **changes))
    download(run, source=source, target=target, **arguments)
    return run


def marker_of(target: Path) -> Marker:
    """The marker of a model that must be there."""
    found = read_marker(target / ".noctaya-ready")
    assert isinstance(found, Marker)
    return found


def content_of(content: Content) -> bytes:
    return b"".join(content.pieces(0, content.size))


def assert_whole(target: Path, hub: Hub, *, repository: str = REPOSITORY) -> None:
    """The target is the repository's newest commit, byte for byte, marked, and nothing lies beside it."""
    repo = hub.repositories[repository]
    files = repo.commits[repo.refs["main"]].files
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert found == {*files, ".noctaya-ready"}
    for name, content in files.items():
        digest = hashlib.sha256((target / name).read_bytes()).hexdigest()
        assert digest == hashlib.sha256(content_of(content)).hexdigest(), name
    assert {file.path for file in marker_of(target).files} == set(files)
    assert [path.name for path in target.parent.iterdir()] == [target.name]
