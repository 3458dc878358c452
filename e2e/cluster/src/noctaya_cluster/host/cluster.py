"""Provider `host`: two nodes, a control plane and KEDA as plain processes of this machine."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from noctaya_parts import ensure
from noctaya_parts.locking import locked

from .. import keda
from ..diagnostics import collect
from ..errors import ClusterError
from ..kubectl import Kubectl
from ..provider import Cluster, Report
from . import control, requirements
from .bringup import Bringup, unusable
from .clean import clean
from .facts import facts
from .images import load
from .layout import Layout, default_state
from .parts import Parts, last_words_of
from .readiness import Probe


class HostCluster(Cluster):
    """The cluster whose state is in one folder.

    Args:
        state: the folder; it need not exist. Another folder is another cluster, beside this one.
        report: gets a line of progress now and then.
    """

    name = "host"

    def __init__(self, state: Path | None = None, *, report: Report = print) -> None:
        self._layout = Layout((state or default_state()).absolute())
        self._report = report
        self._kubectl: Kubectl | None = None

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._layout.kubeconfig

    @property
    def kubectl(self) -> Kubectl:
        """kubectl for this cluster."""
        if self._kubectl is None:
            self._kubectl = Kubectl(ensure("kubectl", report=self._report)["kubectl"], self.kubeconfig)
        return self._kubectl

    def start(self) -> None:
        """Bring it up. One that is up is left alone, or mended; what can't be used is removed first."""
        requirements.check_rights()
        with self._alone():
            if self._layout.state.exists():
                if not (reason := unusable(self._layout)):
                    Bringup(self._layout, report=self._report).mend(Parts.of(self._layout))
                    self._report("the cluster is up")
                    for node in self._probe().cordoned():  # by a test that was killed, or one that runs
                        self._report(f"{node} takes no pods: kubectl uncordon {node}")
                    return
                self._report(f"what is left of a cluster is removed first: {reason}")
                clean(self._layout)
            try:
                Bringup(self._layout, report=self._report).create()
            except BaseException as error:
                self._keep_logs()
                clean(self._layout)
                if isinstance(error, ClusterError) and self._failed_logs.exists():
                    raise ClusterError(f"{error}\n(logs: {self._failed_logs})") from error
                raise
            shutil.rmtree(self._failed_logs, ignore_errors=True)

    def load_image(self, *archives: Path) -> None:
        """Bring images to both nodes."""
        parts = Parts.of(self._layout)
        load(parts.nodes, archives, snapshotter=parts.record.snapshotter)

    def stop(self) -> None:
        """Remove it: processes, links, mounts, cgroups, files."""
        requirements.check_rights()
        with self._alone():
            clean(self._layout)
            shutil.rmtree(self._failed_logs, ignore_errors=True)

    def faults(self) -> list[str]:
        """What is wrong with it, from processes to KEDA; empty when it is well. Nothing is changed."""
        parts = Parts.of(self._layout)
        if reason := unusable(self._layout):
            return [reason]
        dead = last_words_of(parts.dead())
        return dead or Probe(self._layout, parts.record.addresses).faults()

    def status(self) -> str:
        """Nodes, versions, KEDA, disk."""
        record = Parts.of(self._layout).record
        faults = self.faults()
        shown = {
            "state": str(self._layout.state),
            "KUBECONFIG": str(self.kubeconfig),
            "versions": ", ".join(f"{name} {value}" for name, value in record.versions.items()),
            "addresses": ", ".join(record.addresses.networks()),
            "disk": f"{size_on_disk(self._layout.state) / 2**20:.0f} MiB",
            "health": "; ".join(faults) or "well",
        }
        lines = [f"{name:<12}{value}" for name, value in shown.items()]
        if not faults:
            lines.append(self.kubectl.run("get", "nodes", "-o", "wide").rstrip())
            lines.append(self.kubectl.run("get", "deployments", "-n", keda.NAMESPACE).rstrip())
        return "\n".join(lines)

    def diagnostics(self, folder: Path, *, namespaces: tuple[str, ...] = ()) -> None:
        """Also the logs of every process and what the machines' networks look like."""
        parts = Parts.of(self._layout)
        collect(self.kubectl, folder, namespaces=namespaces)
        shutil.copytree(self._layout.logs, folder / "processes", dirs_exist_ok=True)
        for machine in parts.machines:
            file = folder / "machines" / f"{machine.name}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(facts(machine))

    def components(self) -> tuple[str, ...]:
        """Every process: those of the control plane by their name, those of nodes by `node/name`."""
        return Parts.of(self._layout).components()

    def stop_component(self, name: str) -> None:
        """SIGKILL it and wait until it is gone."""
        machine, program = Parts.of(self._layout).component(name)
        machine.kill(program)

    def start_component(self, name: str) -> None:
        """Start it again as it was unless it runs; etcd, API server and containerd answer on return."""
        parts = Parts.of(self._layout)
        machine, program = parts.component(name)
        Bringup(self._layout, report=self._report).restart(parts, machine, program)

    @contextmanager
    def pause_api_server(self) -> Iterator[None]:
        """SIGSTOP within the block, SIGCONT after it; the API server answers on return."""
        machine, program = Parts.of(self._layout).component(control.API_SERVER)
        process = machine.process(program)
        with locked(self._layout.pause, waiting=lambda: self._report("the API server is paused, waiting")):
            process.signal(signal.SIGSTOP)
            try:
                yield
            finally:
                process.signal(signal.SIGCONT)
        self._probe().await_api()

    @property
    def _failed_logs(self) -> Path:
        return self._layout.state.with_name(f"{self._layout.state.name}.failed")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One command at a time changes it; the kernel frees the lock of one that was killed."""
        self._layout.lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._layout.lock, waiting=lambda: self._report("another command is at it, waiting")):
            yield

    def _probe(self) -> Probe:
        return Probe(self._layout, Parts.of(self._layout).record.addresses)

    def _keep_logs(self) -> None:
        shutil.rmtree(self._failed_logs, ignore_errors=True)
        if self._layout.logs.exists():
            shutil.copytree(self._layout.logs, self._failed_logs)


def size_on_disk(folder: Path) -> int:
    """Bytes on disk; files and folders that go meanwhile are not counted."""
    total = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            try:
                total += Path(parent, name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue
    return total
