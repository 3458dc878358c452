"""Bringing a host cluster up from nothing, and mending one that is up but not well."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from noctaya_parts import ensure, versions
from noctaya_parts.locking import locked

from .. import keda
from ..errors import ClusterError
from ..kubectl import Kubectl
from ..provider import Report
from . import control, network, requirements
from .images import cache_folder, ensure_archives, forget_old_archives, load, own_images
from .layout import Layout
from .machines import Machine, last_words
from .node import CONTAINERD, KUBELET, Node
from .parts import Parts, last_words_of
from .readiness import Probe, wait_until
from .record import Record
from .setup import PROGRAMS, finish_nodes, install, keda_objects
from .users import MANAGER, PROVISIONER, PROXY, ROUTER, SCHEDULER, write_credentials

CONTAINERD_SECONDS: Final = 60.0
PROVIDER: Final = "1"
"""Raise it when a cluster that is up must not be taken for one of today: its shape, not its content."""
WEIGHT: Final = 10
"""Busy processes of this machine that a busy cluster is worth; as one, a compiler would starve it."""
ORDER: Final = (control.ETCD, control.API_SERVER, CONTAINERD)
PASSING_SECONDS: Final = 20.0
"""Time for a cluster to become well by itself, for something that restarts."""


class Bringup:
    """Does it for one cluster; whoever calls holds the cluster's lock.

    Args:
        layout: of the cluster.
        report: gets a line of progress now and then.
    """

    def __init__(self, layout: Layout, *, report: Report) -> None:
        self._layout = layout
        self._report = report
        self._began = time.monotonic()

    def create(self) -> None:
        """From nothing. What can go side by side does: two nodes take images while the API server starts.

        Raises:
            ClusterError: the machine lacks something, or a part did not start: its last words.
            BuildError: a program could not be built.
        """
        programs = ensure(*PROGRAMS, report=self._report)
        requirements.check(self._layout, report=self._report)
        self._began = time.monotonic()
        parts = Parts(self._layout, self._decide())
        addresses = parts.record.addresses
        probe = Probe(self._layout, addresses)
        with self._pool(parts) as pool:
            archives = pool.submit(ensure_archives, own_images(programs), cache_folder())
            manifests = pool.submit(keda_objects, programs["kubectl"])
            self._start_control(parts, programs)
            loaded = [
                pool.submit(self._start_containerd, machine, node, archives, parts.record.snapshotter)
                for machine, node in zip(parts.nodes, parts.configurations, strict=True)
            ]
            probe.await_api()
            self._say("API server")
            self._start_rest(parts, programs)
            for each in loaded:
                each.result()
            self._say("containerd and images")
            kubectl = Kubectl(programs["kubectl"], self._layout.kubeconfig)
            install(kubectl, addresses, manifests.result())
            finish_nodes(kubectl, addresses)
            for machine, node in zip(parts.nodes, parts.configurations, strict=True):
                machine.spawn(
                    ROUTER, node.router(programs)
                )  # it ends at once when its node is not registered
            self._say("nodes, DNS and KEDA installed")
            probe.await_all()
            if dead := last_words_of(parts.dead()):
                raise ClusterError("; ".join(dead))
            forget_old_archives(archives.result(), cache_folder())
        self._say("ready")

    def mend(self, parts: Parts) -> None:
        """Make a cluster well without losing what is in it.

        Dead processes are started again; DNS and KEDA are applied again when they don't come back alone.

        Raises:
            ClusterError: something is still wrong. It is not removed for that: somebody may be at work on it.
        """
        self._await_unpaused(parts)
        probe = Probe(self._layout, parts.record.addresses)
        for machine, name in sorted(parts.dead(), key=lambda dead: _rank(dead[1])):
            self._say(f"{machine.name}: {name} is started again")
            self.restart(parts, machine, name)
        faults = probe.faults_after(PASSING_SECONDS)
        if faults and probe.api_answers():
            self._say(f"applying DNS and KEDA again ({'; '.join(faults)})")
            kubectl = Kubectl(ensure("kubectl", report=self._report)["kubectl"], self._layout.kubeconfig)
            finish_nodes(kubectl, parts.record.addresses)
            install(kubectl, parts.record.addresses, keda_objects(Path(kubectl.prefix[0])))
            faults = probe.faults_after(4 * PASSING_SECONDS)
        if faults := faults or last_words_of(parts.dead()):
            raise ClusterError(
                f"the cluster in {self._layout.state} is up and not well: {'; '.join(faults)}; "
                "`down` removes it, `up` makes a new one"
            )

    def _await_unpaused(self, parts: Parts) -> None:
        """Wait for whoever has paused the API server; go on for one who was killed meanwhile."""
        process = parts.control.process(control.API_SERVER)
        if process.stopped:
            with locked(self._layout.pause, waiting=lambda: self._say("the API server is paused, waiting")):
                process.signal(signal.SIGCONT)

    def restart(self, parts: Parts, machine: Machine, name: str) -> None:
        """Start a process of the cluster again unless it runs; what others need answers on return."""
        if not machine.process(name).running:
            machine.respawn(name)
        if name == CONTAINERD:  # kubelet ends when it starts before
            _await_containerd(machine)
        elif name in {control.ETCD, control.API_SERVER} and not _is_dead(parts.control, control.API_SERVER):
            Probe(self._layout, parts.record.addresses).await_api()

    def _say(self, line: str) -> None:
        self._report(f"{time.monotonic() - self._began:5.1f} s  {line}")

    @contextmanager
    def _pool(self, parts: Parts) -> Iterator[ThreadPoolExecutor]:
        """Threads that are over on return. After an error or Ctrl-C what they wait for is ended first."""
        pool = ThreadPoolExecutor()
        try:
            yield pool
        except BaseException:
            parts.cgroup.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _decide(self) -> Record:
        """Everything that is up to the machine, on disk before anything is made."""
        layout = self._layout
        for folder in (layout.logs, layout.processes, layout.pki, layout.volumes):
            folder.mkdir(parents=True, exist_ok=True)
        layout.pki.chmod(0o700)
        record = Record(
            block=network.free_block(),
            snapshotter=requirements.snapshotter(layout.state),
            versions=wanted_versions(),
        )
        record.write(layout.record)
        return record

    def _start_control(self, parts: Parts, programs: Mapping[str, Path]) -> None:
        addresses = parts.record.addresses
        certificates = control.pki(self._layout, addresses)
        certificates.create()
        write_credentials(self._layout, server=control.server_url(addresses), ca_file=certificates.ca_file)
        parts.cgroup.create()
        parts.cgroup.weigh(WEIGHT)
        for machine in parts.machines:
            machine.start()
        network.connect(self._layout, addresses, parts.control, parts.nodes)
        self._say("machines and links")
        parts.control.spawn(control.ETCD, control.etcd(programs, parts.control.folder))
        argv = control.api_server(programs, self._layout, addresses, certificates)
        parts.control.spawn(control.API_SERVER, argv)

    def _start_rest(self, parts: Parts, programs: Mapping[str, Path]) -> None:
        """What would end again without an API server."""
        layout, addresses = self._layout, parts.record.addresses
        argv = control.controller_manager(programs, layout, addresses, control.pki(layout, addresses))
        parts.control.spawn(MANAGER, argv)
        parts.control.spawn(SCHEDULER, control.scheduler(programs, layout))
        parts.control.spawn(PROVISIONER, control.volume_provisioner(layout))
        for machine, node in zip(parts.nodes, parts.configurations, strict=True):
            machine.spawn(PROXY, node.proxy(programs))
            machine.spawn(KUBELET, node.kubelet(programs))

    def _start_containerd(
        self, machine: Machine, node: Node, archives: Future[list[Path]], snapshotter: str
    ) -> None:
        node.write(snapshotter)
        machine.spawn(CONTAINERD, node.containerd())
        _await_containerd(machine)
        load([machine], archives.result(), snapshotter=snapshotter)


def unusable(layout: Layout) -> str:
    """Why what is in a folder can only be removed; nothing for a cluster that is up, well or not."""
    record = Record.read(layout.record)
    if record is None or not layout.kubeconfig.exists():
        return "it was never complete"
    parts = Parts(layout, record)
    if not parts.held():
        return "its machines are gone"
    if not all(node.known(ROUTER) for node in parts.nodes):  # the last that is started
        return "it was never complete"
    return "; ".join(other_versions(record.versions, wanted_versions()))


def wanted_versions() -> dict[str, str]:
    """What a cluster made now consists of."""
    return {
        "Kubernetes": versions.KUBERNETES,
        "etcd": versions.ETCD,
        "KEDA": keda.VERSION,
        "provider": PROVIDER,
    }


def other_versions(found: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """A line for each part that is there in another version than it should be."""
    return [
        f"its {name} is {version}, {wanted[name]} is wanted"
        for name, version in found.items()
        if wanted.get(name, version) != version
    ]


def _await_containerd(machine: Machine) -> None:
    wait_until(
        lambda: machine.answers(["ctr", "version"]),
        within=CONTAINERD_SECONDS,
        what=lambda: f"{machine.name}: containerd does not answer: {last_words(machine.log(CONTAINERD))}",
    )


def _is_dead(machine: Machine, name: str) -> bool:
    return not machine.process(name).running


def _rank(name: str) -> int:
    """Which processes others need."""
    return ORDER.index(name) if name in ORDER else len(ORDER)
