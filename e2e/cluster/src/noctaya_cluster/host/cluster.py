"""Provider `host`: two nodes, a control plane and KEDA as plain processes of this machine."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from noctaya_parts import ensure, versions
from noctaya_parts.locking import locked

from .. import keda
from ..diagnostics import collect
from ..errors import ClusterError
from ..kubectl import Kubectl
from ..provider import Cluster, Report
from . import control, network, requirements
from .cgroups import Cgroup
from .clean import clean
from .images import cache_folder, ensure_archives, forget_old_archives, load, own_images
from .layout import CONTROL, NODES, Layout, default_state
from .machines import HOLDER, Machine, last_words
from .node import CONTAINERD, KERNEL_SETTINGS, KUBELET, PRIVATE_MOUNT_POINTS, Node
from .readiness import Probe, wait_until
from .record import Record
from .setup import PROGRAMS, finish_nodes, install, keda_objects
from .users import MANAGER, PROVISIONER, PROXY, ROUTER, SCHEDULER, write_credentials

UNPAUSED: Final = signal.SIGCONT


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
        self._began = time.monotonic()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._layout.kubeconfig

    @property
    def kubectl(self) -> Kubectl:
        """kubectl for this cluster."""
        return Kubectl(ensure("kubectl", report=self._report)["kubectl"], self.kubeconfig)

    def start(self) -> None:
        """Bring it up; a cluster that is up and well is left alone, one that is not is removed first."""
        requirements.check_rights()
        self._began = time.monotonic()
        with self._alone():
            if self._layout.state.exists():
                faults = self.faults()
                if not faults:
                    self._report("the cluster is up")
                    return
                self._report(f"what is left of a cluster is removed first ({faults[0]})")
                clean(self._layout)
            try:
                self._create()
            except BaseException as error:
                self._keep_logs()
                clean(self._layout)
                if isinstance(error, ClusterError):
                    raise ClusterError(f"{error}\n(logs: {self._failed_logs})") from error
                raise

    def load_image(self, *archives: Path) -> None:
        """Bring images to both nodes."""
        record = self._record()
        load(self._machines(record)[1:], archives, snapshotter=record.snapshotter)

    def stop(self) -> None:
        """Remove it: processes, links, mounts, cgroups, files."""
        requirements.check_rights()
        with self._alone():
            clean(self._layout)

    def faults(self) -> list[str]:
        """What is wrong with it, from processes to KEDA; empty when it is well."""
        record = Record.read(self._layout.record)
        if record is None:
            return ["it was never complete"]
        if dead := self._dead(record):
            return dead
        if not self._layout.kubeconfig.exists():
            return ["it was never complete"]
        return Probe(self._layout, record.addresses).faults()

    def status(self) -> str:
        """Nodes, versions, KEDA, disk."""
        record = self._record()
        faults = self.faults()
        lines = [f"state       {self._layout.state}", f"KUBECONFIG  {self.kubeconfig}"]
        lines.append("versions    " + ", ".join(f"{name} {value}" for name, value in record.versions.items()))
        lines.append(f"addresses   {', '.join(record.addresses.networks())}")
        lines.append(f"disk        {_size(self._layout.state) / 2**20:.0f} MiB")
        lines.append("health      " + ("; ".join(faults) or "well"))
        if not faults:
            lines.append(self.kubectl.run("get", "nodes", "-o", "wide").rstrip())
            lines.append(self.kubectl.run("get", "deployments", "-n", keda.NAMESPACE).rstrip())
        return "\n".join(lines)

    def diagnostics(self, folder: Path, *, namespaces: tuple[str, ...] = ()) -> None:
        """Also the logs of every process and what the nodes' networks look like."""
        collect(self.kubectl, folder, namespaces=namespaces)
        record = self._record()
        if self._layout.logs.exists():
            shutil.copytree(self._layout.logs, folder / "processes", dirs_exist_ok=True)
        for machine in self._machines(record):
            facts = folder / "machines" / f"{machine.name}.txt"
            facts.parent.mkdir(parents=True, exist_ok=True)
            facts.write_text(requirements.facts(machine))

    def components(self) -> tuple[str, ...]:
        """Every process by `machine/name`; those of the control plane also by their name alone."""
        machines = self._machines(self._record())
        own = tuple(machines[0].programs())
        return (*own, *(f"{node.name}/{name}" for node in machines[1:] for name in node.programs()))

    def stop_component(self, name: str) -> None:
        """SIGKILL it and wait until it is gone."""
        machine, program = self._component(name)
        machine.kill(program)

    def start_component(self, name: str) -> None:
        """Start it again with the same arguments; the API server is ready on return."""
        machine, program = self._component(name)
        if machine.process(program).running:
            return
        machine.respawn(program)
        if program in {control.API_SERVER, control.ETCD}:
            Probe(self._layout, self._record().addresses).await_api()

    @contextmanager
    def pause_api_server(self) -> Iterator[None]:
        """SIGSTOP within the block, SIGCONT after it."""
        machine, program = self._component(control.API_SERVER)
        process = machine.process(program)
        process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.signal(UNPAUSED)
            Probe(self._layout, self._record().addresses).await_api()

    @property
    def _failed_logs(self) -> Path:
        return self._layout.state.with_name(f"{self._layout.state.name}.failed")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One command at a time changes it; the kernel frees the lock of one that was killed."""
        self._layout.lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(
            self._layout.lock, waiting=lambda: self._report("another command is at the cluster, waiting")
        ):
            yield

    def _say(self, line: str) -> None:
        self._report(f"{time.monotonic() - self._began:5.1f} s  {line}")

    def _record(self) -> Record:
        record = Record.read(self._layout.record)
        if record is None:
            raise ClusterError(f"there is no cluster in {self._layout.state}: `python -m noctaya_cluster up`")
        return record

    def _machines(self, record: Record) -> list[Machine]:
        cgroup = Cgroup.of_this_machine(self._layout.cgroup)
        return [
            Machine(CONTROL, layout=self._layout, cgroup=cgroup, private={"/run": None}),
            *(
                Machine(
                    node.name,
                    layout=self._layout,
                    cgroup=cgroup,
                    private=node.private(),
                    files=KERNEL_SETTINGS,
                )
                for node in self._nodes(record)
            ),
        ]

    def _dead(self, record: Record) -> list[str]:
        """Processes that should run and don't, with their last words."""
        return [
            f"{machine.name}: {name} does not run: {last_words(machine.log(name), 1)}"
            for machine in self._machines(record)
            for name in (HOLDER, *machine.programs())
            if not machine.process(name).running
        ]

    def _nodes(self, record: Record) -> list[Node]:
        return [
            Node(number, name, self._layout, record.addresses) for number, name in enumerate(NODES, start=1)
        ]

    def _component(self, name: str) -> tuple[Machine, str]:
        machine_name, _, program = name.rpartition("/")
        for machine in self._machines(self._record()):
            if machine.name == (machine_name or CONTROL) and program in machine.programs():
                return machine, program
        raise ClusterError(f"there is no component {name}; there are {', '.join(self.components())}")

    def _create(self) -> None:
        programs = ensure(*PROGRAMS, report=self._report)
        requirements.check(self._layout, report=self._report)
        for folder in (self._layout.logs, self._layout.processes, self._layout.pki, self._layout.volumes):
            folder.mkdir(parents=True, exist_ok=True)
        self._layout.pki.chmod(0o700)
        record = Record(
            block=network.free_block(),
            snapshotter=requirements.snapshotter(self._layout.state),
            made=tuple(path for path in PRIVATE_MOUNT_POINTS if not Path(path).exists()),
            versions={"Kubernetes": versions.KUBERNETES, "etcd": versions.ETCD, "KEDA": keda.VERSION},
        )
        record.write(self._layout.record)
        with ThreadPoolExecutor() as pool:
            archives = pool.submit(ensure_archives, own_images(programs), cache_folder())
            manifests = pool.submit(keda_objects, programs["kubectl"])
            certificates = control.pki(self._layout, record.addresses)
            certificates.create()
            write_credentials(self._layout, server=control.server_url(record.addresses), ca_file="ca.crt")
            control_machine, *nodes = machines = self._machines(record)
            for machine in machines:
                machine.start()
            network.connect(self._layout, record.addresses, control_machine, nodes)
            self._say("machines and links")
            control_machine.spawn(control.ETCD, control.etcd(programs, control_machine.folder))
            argv = control.api_server(programs, self._layout, record.addresses, certificates)
            control_machine.spawn(control.API_SERVER, argv)
            loaded = [
                pool.submit(self._start_containerd, machine, node, archives, record.snapshotter)
                for machine, node in zip(nodes, self._nodes(record), strict=True)
            ]
            probe = Probe(self._layout, record.addresses)
            probe.await_api()
            self._say("API server")
            argv = control.controller_manager(programs, self._layout, record.addresses, certificates)
            control_machine.spawn(MANAGER, argv)
            control_machine.spawn(SCHEDULER, control.scheduler(programs, self._layout))
            control_machine.spawn(PROVISIONER, requirements.provisioner_command(self._layout))
            for machine, node in zip(nodes, self._nodes(record), strict=True):
                machine.spawn(PROXY, node.proxy(programs))
                machine.spawn(KUBELET, node.kubelet(programs))
            for each in loaded:
                each.result()
            self._say("containerd and images")
            install(self.kubectl, record.addresses, manifests.result())
            finish_nodes(self.kubectl, record.addresses)
            for machine, node in zip(nodes, self._nodes(record), strict=True):
                machine.spawn(
                    ROUTER, node.router(programs)
                )  # it ends at once when its node is not registered
            self._say("nodes, DNS and KEDA installed")
            probe.await_all()
            if dead := self._dead(record):
                raise ClusterError("; ".join(dead))
            forget_old_archives(archives.result(), cache_folder())
        self._say("ready")

    def _start_containerd(
        self, machine: Machine, node: Node, archives: Future[list[Path]], snapshotter: str
    ) -> None:
        node.write(snapshotter)
        machine.spawn(CONTAINERD, node.containerd())
        wait_until(
            lambda: machine.answers(["ctr", "version"]),
            within=30.0,
            what=lambda: f"{machine.name}: containerd does not answer: {last_words(machine.log(CONTAINERD))}",
        )
        load([machine], archives.result(), snapshotter=snapshotter)

    def _keep_logs(self) -> None:
        shutil.rmtree(self._failed_logs, ignore_errors=True)
        if self._layout.logs.exists():
            shutil.copytree(self._layout.logs, self._failed_logs)


def _size(folder: Path) -> int:
    """Bytes on disk; files that go meanwhile are not counted."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.lstat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total
