"""kill -9 at any byte: it never leaves a marker on half a model, and the next run ends well (M1).

The victim is a child process whose writes, syncs and renames are counted; it kills itself within the one that
hypothesis chose.
"""

import json
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from noctaya_prewarm.run import Run
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.stage import stage
from noctaya_prewarm.verify import verify
from oci_artifacts import LayoutWriter, manifest_of, source_of, tar_of, titled, tree_of, unpacked_layer

FILES = {"config.json": b"{}", "weights.safetensors": os.urandom(2_100_000), "empty": b""}
TOKENIZER = {"tok/vocab.txt": b"v" * 3000, "tok/merges.txt": b"m" * 1_100_000}
WHOLE = FILES | TOKENIZER
# A kill is no power failure: what was written is there, synced or not. So the disk may be quick.
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
COUNTED = ("write", "fsync", "rename", "replace", "unlink", "mkdir")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    layout = LayoutWriter(tmp_path_factory.mktemp("pulled") / "staging")
    blob, layer = unpacked_layer(tar_of(TOKENIZER.items()), "tok")
    for content in (*FILES.values(), blob):
        layout.blob(content)
    layers = [titled(content, title) for title, content in FILES.items()]
    return layout.root, layout.manifest(manifest_of([*layers, layer]))


def stage_into(cache: Path, artifact: tuple[Path, str]) -> None:
    layout, digest = artifact
    target = cache / "oci" / f"sha256-{digest}"
    stage(
        layout=layout,
        source=source_of(digest),
        target=str(target),
        marker=str(target / ".noctaya-ready"),
        prune=False,
        run=Run(AgentSettings(disk_margin=0)),
    )


class Counter:
    """Counts the calls that change the disk, and kills the process within the one with number `fatal`."""

    def __init__(self, *, fatal: int, cut: float) -> None:
        self.count = 0
        self._fatal, self._cut = fatal, cut

    def install(self) -> None:
        for name in COUNTED:
            setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.count == self._fatal:
                if name == "write":
                    data = memoryview(arguments[1])
                    call(arguments[0], data[: int(len(data) * self._cut)])
                elif self._cut > 0.5:
                    call(*arguments, **options)
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return counted


def in_child(cache: Path, artifact: tuple[Path, str], *, fatal: int = 0, cut: float = 1) -> tuple[bool, int]:
    """Stage in a child. Gives whether it was killed, and how many calls it made."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            counter = Counter(fatal=fatal, cut=cut)
            os.close(reading)
            send = os.write
            counter.install()
            stage_into(cache, artifact)
            send(writing, json.dumps(counter.count).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, outcome = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(outcome) and os.WTERMSIG(outcome) == signal.SIGKILL
    assert killed or os.waitstatus_to_exitcode(outcome) == 0
    return killed, json.loads(told) if told else 0


@pytest.fixture(scope="module")
def calls(artifact: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many changes of the disk a whole run makes."""
    killed, count = in_child(tmp_path_factory.mktemp("cache"), artifact)
    assert not killed
    assert count > 20
    return count


# No shrinking: a failing kill is as good as a simpler one, and each costs a process.
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@pytest.mark.timeout(600)
@given(data=st.data())
def test_m1_a_kill_at_any_moment_never_leaves_a_marker_on_half_a_model(
    artifact: tuple[Path, str], calls: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        cache = Path(folder)
        target = cache / "oci" / f"sha256-{artifact[1]}"
        marker = target / ".noctaya-ready"
        for _ in range(data.draw(st.integers(1, 3), label="kills")):
            fatal = data.draw(st.integers(1, calls), label="call")
            in_child(cache, artifact, fatal=fatal, cut=data.draw(st.floats(0, 1), label="cut"))
            if marker.exists():
                assert tree_of(target).items() >= WHOLE.items()
                verify(Run(AgentSettings()), marker=marker, deep=True)
            elif target.exists():
                assert tree_of(target).items() >= WHOLE.items(), "a target appears when it is whole"
        killed, _ = in_child(cache, artifact)
        assert not killed
        assert tree_of(target) == WHOLE
        verify(Run(AgentSettings()), marker=marker, deep=True)
        assert [path.name for path in (cache / "oci").iterdir()] == [target.name]


def test_the_lease_of_a_run_killed_at_its_very_last_call_is_put_away_by_the_next(
    artifact: tuple[Path, str], calls: int, tmp_path: Path
) -> None:
    killed, _ = in_child(tmp_path, artifact, fatal=calls, cut=0)
    assert killed
    assert len(list((tmp_path / "oci").iterdir())) == 2
    killed, _ = in_child(tmp_path, artifact)
    assert not killed
    assert [path.name for path in (tmp_path / "oci").iterdir()] == [f"sha256-{artifact[1]}"]
