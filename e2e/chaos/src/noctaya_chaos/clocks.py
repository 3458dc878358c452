"""Wall clocks of Pods set wrong, while they run.

A container has no wall clock of its own, but a process can be given one: Debian's libfaketime, loaded before
the C library, adds to every time it reads what a file says, here one file a Pod. So Deployments are rolled
out with it once, telling the right time; a clock is set wrong and right again by writing the file, which the
processes notice within a second, like a clock that somebody corrects. The monotonic clock stays what it is:
so it does when a machine's clock is set.

The settings are applied as a field manager of their own beside the operator's and helm's, which keep theirs,
and given up in the end.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from noctaya_apiserver import ApiClient
from noctaya_parts.debian import ensure_packages
from noctaya_scenarios.access import Access
from noctaya_scenarios.faults import processes_of
from noctaya_scenarios.waiting import until

Object = dict[str, Any]

PACKAGE: Final = "libfaketime"
LIBRARY: Final = "faketime/libfaketimeMT.so.1"
"""Below a folder of libraries; the one for programs with threads."""
LIBRARIES: Final = Path("/usr/lib")
MANAGER: Final = "noctaya-chaos"
LIBRARY_AT: Final = "/chaos/library"
CLOCKS_AT: Final = "/chaos/clocks"
POD_NAME: Final = "CHAOS_POD_NAME"
ROLLED_SECONDS: Final = 120.0
CLOSE: Final = 5.0
"""Seconds by which a clock may differ from what it was set to, read by a program started for it."""
PYTHON: Final = "/opt/noctaya/bin/python3"
"""In every image of ours."""
NOTICED: Final = 3.0
"""Seconds after which a process goes by what the file says: it is read again every second, and the first time
asked for after that is the old one still."""


class NoLibrary(Exception):
    """libfaketime is not where Debian's package puts it."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A Deployment whose Pods get clocks that can be set.

    Attributes:
        namespace: of the Deployment.
        name: of the Deployment.
        container: the one whose processes are meant.
    """

    namespace: str
    name: str
    container: str

    @property
    def path(self) -> str:
        """In the API."""
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"

    def bare(self) -> Object:
        """A manifest that sets nothing: applying it gives up what the manager set."""
        metadata = {"namespace": self.namespace, "name": self.name}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}

    def with_clock(self, *, library: Path, clocks: Path) -> Object:
        """What a manager applies so that the Pods' clocks can be set.

        Args:
            library: of this machine, which is the node.
            clocks: the folder with a file for each Pod whose clock is wrong.
        """
        environment: list[Object] = [
            {"name": POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LD_PRELOAD", "value": f"{LIBRARY_AT}/{library.name}"},
            {"name": "FAKETIME_TIMESTAMP_FILE", "value": f"{CLOCKS_AT}/$({POD_NAME})"},
            {"name": "FAKETIME_CACHE_DURATION", "value": "1"},
            {"name": "FAKETIME_DONT_FAKE_MONOTONIC", "value": "1"},
            {"name": "NO_FAKE_STAT", "value": "1"},
        ]
        mounts = [
            {"name": "chaos-library", "mountPath": LIBRARY_AT, "readOnly": True},
            {"name": "chaos-clocks", "mountPath": CLOCKS_AT, "readOnly": True},
        ]
        volumes = [
            {"name": "chaos-library", "hostPath": {"path": str(library.parent), "type": "Directory"}},
            {"name": "chaos-clocks", "hostPath": {"path": str(clocks), "type": "Directory"}},
        ]
        container = {"name": self.container, "env": environment, "volumeMounts": mounts}
        spec = {"containers": [container], "volumes": volumes}
        return {**self.bare(), "spec": {"template": {"spec": spec}}}


class Clocks:
    """Clocks of Pods that have the library.

    Args:
        folder: read by the library.
        access: to the cluster.
    """

    def __init__(self, folder: Path, access: Access) -> None:
        self._folder, self._access = folder, access

    def set(self, workload: Workload, pod: str, seconds: int) -> None:
        """Set a Pod's clock so far ahead, or behind when negative; AssertionError when it does not follow."""
        write_offset(self._folder / pod, seconds)
        time.sleep(NOTICED)
        assert follows(pod), f"{pod} runs without {LIBRARY}"
        read = [PYTHON, "-I", "-c", "import time; print(time.time())"]
        where = ("-n", workload.namespace, "exec", pod, "-c", workload.container, "--")
        before = time.time()
        off = float(self._access.kubectl(*where, *read)) - before
        assert abs(off - seconds) < CLOSE, f"the clock of {pod} is {off:+.1f} s off, not {seconds:+d} s"

    def right(self) -> None:
        """All tell the right time again."""
        for file in self._folder.iterdir():
            file.unlink()
        time.sleep(NOTICED)


@contextmanager
def settable(api: ApiClient, access: Access, workloads: Sequence[Workload]) -> Iterator[Clocks]:
    """Within the block the clocks of these Deployments' Pods can be set; rolled out with the library before
    it, without it after it.

    Raises:
        PackagesMissing: libfaketime can't be installed.
        NoLibrary: it is not where it belongs.
    """
    library = find_library()
    folder = Path(tempfile.mkdtemp(prefix="noctaya-clocks-"))
    folder.chmod(0o755)  # Pods are of other users
    try:
        for workload in workloads:
            api.apply(workload.with_clock(library=library, clocks=folder), manager=MANAGER)
        for workload in workloads:
            await_rolled(api, workload)
        clocks = Clocks(folder, access)
        try:
            yield clocks
        finally:
            clocks.right()
    finally:
        for workload in workloads:
            api.apply(workload.bare(), manager=MANAGER)
        for workload in workloads:
            await_rolled(api, workload)
        shutil.rmtree(folder)


def find_library(libraries: Path = LIBRARIES) -> Path:
    """libfaketime of this machine, installed if need be. Raises PackagesMissing, NoLibrary."""
    ensure_packages(PACKAGE)
    found = sorted(libraries.glob(f"*/{LIBRARY}"))
    if not found:
        raise NoLibrary(
            f"there is no {libraries}/*/{LIBRARY}, though Debian's package {PACKAGE} is installed"
        )
    return found[0]


def write_offset(file: Path, seconds: int) -> None:
    """At once, not byte by byte: it is being read."""
    partial = file.with_name(f".{file.name}")
    partial.write_text(f"{seconds:+d}\n")
    partial.chmod(0o644)
    partial.replace(file)


def follows(pod: str) -> bool:
    """Whether a Pod's processes have the library loaded."""
    maps = (Path(f"/proc/{process.pid}/maps").read_text() for process in processes_of(pod))
    return all(Path(LIBRARY).name in each for each in maps)


def await_rolled(api: ApiClient, workload: Workload) -> None:
    """Wait until every replica is of the newest kind and available, and none of another."""
    until(
        lambda: rolled(api.get(workload.path)), within=ROLLED_SECONDS, what=f"{workload.name} is rolled out"
    )


def rolled(deployment: Object) -> bool:
    """Whether a Deployment's roll-out is over."""
    wanted, status = deployment["spec"]["replicas"], deployment.get("status") or {}
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return bool(
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and counts == [wanted, wanted, wanted]
    )
