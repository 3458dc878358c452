"""etcd, kube-apiserver and, on demand, kube-controller-manager on loopback: Kubernetes without nodes.

What it has: admission, defaults, validation, CEL, server-side apply, RBAC, watches, garbage collection,
Deployments that make Pods. What it has not: a scheduler and a kubelet, so no Pod ever runs by itself.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import httpx
from noctaya_parts import Report

from .audit import POLICY, AuditLog, Request
from .build import Binaries, ensure_binaries
from .child import Child, ChildFailed
from .client import ApiClient
from .pki import Pki
from .ports import free_ports
from .users import ADMIN, CONTROLLERS, User, default_users, write_kubeconfig, write_token_file

START_SECONDS: Final = 90.0
"""Ready after 3 s on an idle machine; this is for a busy one."""
PORT_TRIES: Final = 5
AUDIT_LOG: Final = "audit.log"
TAKEN: Final = ("address already in use", "bind: permission denied")

RUNNING_CONTROLLERS: Final = (
    "garbage-collector-controller",
    "namespace-controller",
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
    "endpointslice-controller",
    "disruption-controller",
    "persistentvolumeclaim-protection-controller",
)
"""Those that act on what the operator makes; no node, autoscaling or cloud controller."""


class ControlPlane:
    """A control plane of its own; a context manager.

    Args:
        folder: for its data, certificates, kubeconfigs and logs; kept, whoever made it removes it.
        users: further users besides `admin`; their rights are up to RBAC objects.
        objects: applied before the controller manager starts, CRDs above all: it looks for new kinds only
            every 30 s.
        controllers: names of the controllers to run; none for the bare API.
        report: gets progress of a build.
    """

    def __init__(
        self,
        folder: Path,
        *,
        users: Iterable[User] = (),
        objects: Iterable[Mapping[str, Any]] = (),
        controllers: Iterable[str] = RUNNING_CONTROLLERS,
        report: Report = print,
    ) -> None:
        self.folder = folder
        self._users = {user.name: user for user in (*default_users(), *users)}
        self._objects = list(objects)
        self._controllers = tuple(controllers)
        self._report = report
        self._pki = Pki(folder)
        self._audit = AuditLog(folder / AUDIT_LOG)
        self._clients: list[ApiClient] = []
        self._etcd: Child | None = None
        self._apiserver: Child | None = None
        self._manager: Child | None = None
        self._etcd_port = self._port = 0
        self._binaries: Binaries | None = None

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_file(self) -> Path:
        """Certificate authority of the API server."""
        return self._pki.ca_file

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        children = (self._etcd, self._apiserver, self._manager)
        return {child.name: child.pid for child in children if child is not None}

    def user(self, name: str = ADMIN) -> User:
        """A user with its token."""
        return self._users[name]

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """The kubeconfig of a user."""
        return self.folder / f"{user}.kubeconfig"

    def client(self, user: str = ADMIN) -> ApiClient:
        """A client, closed with the control plane."""
        client = ApiClient(self.server, token=self._users[user].token, ca_file=self.ca_file)
        self._clients.append(client)
        return client

    def start(self) -> None:
        """Start everything and return when it is ready; on failure nothing is left running.

        Raises:
            BuildError: the binaries could not be built.
            ChildFailed: a process ended or did not get ready; the message has its last words.
        """
        self._binaries = ensure_binaries(report=self._report)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._pki.create()
        write_token_file(tuple(self._users.values()), self.folder / "tokens.csv")
        (self.folder / "audit-policy.yaml").write_text(POLICY)
        try:
            self._start_etcd(self._binaries)
            self._start_apiserver_on_a_free_port(self._binaries)
            if self._objects:
                self.client().install(self._objects)
            if self._controllers:
                self._start_manager(self._binaries)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process; the folder with the logs stays."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        # Nothing here is worth an orderly end but the time it takes: the data is thrown away.
        for child in (self._manager, self._apiserver, self._etcd):
            if child is not None:
                child.kill()
        self._manager = self._apiserver = self._etcd = None

    def stop_apiserver(self) -> None:
        """End the API server alone, as a node failure does: connections break, etcd goes on."""
        if self._apiserver is not None:
            self._apiserver.kill()
            self._apiserver = None

    def start_apiserver(self) -> None:
        """Start the API server that was stopped, at the same address with the same data."""
        assert self._binaries is not None
        self._apiserver = self._new_apiserver(self._binaries)
        self._await_ready(self._apiserver)

    def check(self) -> None:
        """Raises ChildFailed when one of its processes has ended by itself."""
        for child in (self._etcd, self._apiserver, self._manager):
            if child is not None:
                child.check_running()

    def requests(self) -> list[Request]:
        """All requests answered so far and all watches begun, from the audit log."""
        return self._audit.requests()

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_etcd(self, binaries: Binaries) -> None:
        for _ in range(PORT_TRIES):
            self._etcd_port, peers = free_ports(2)
            client_url, peer_url = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, peers))
            child = self._etcd = self._child(
                "etcd",
                binaries.etcd,
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client_url}",
                f"--advertise-client-urls={client_url}",
                f"--listen-peer-urls={peer_url}",
                f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=default={peer_url}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            )
            if self._answers(child, f"{client_url}/health"):
                return
        raise ChildFailed(f"etcd: {PORT_TRIES} times the port was taken: {child.last_words()}")

    def _start_apiserver_on_a_free_port(self, binaries: Binaries) -> None:
        for _ in range(PORT_TRIES):
            (self._port,) = free_ports(1)
            for user in self._users.values():
                file = self.kubeconfig(user.name)
                write_kubeconfig(user, file, server=self.server, ca_file=self.ca_file)
            child = self._apiserver = self._new_apiserver(binaries)
            if self._await_ready(child):
                return
        raise ChildFailed(f"kube-apiserver: {PORT_TRIES} times the port was taken: {child.last_words()}")

    def _new_apiserver(self, binaries: Binaries) -> Child:
        return self._child(
            "kube-apiserver",
            binaries.kube_apiserver,
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--tls-cert-file={self._pki.certificate}",
            f"--tls-private-key-file={self._pki.key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._pki.service_accounts_public}",
            f"--service-account-signing-key-file={self._pki.service_accounts}",
            # Pods need no token here. Setting blockOwnerDeletion shall need the right to, as on OpenShift.
            "--disable-admission-plugins=ServiceAccount",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            f"--audit-policy-file={self.folder / 'audit-policy.yaml'}",
            f"--audit-log-path={self.folder / AUDIT_LOG}",
            "--audit-log-mode=blocking",
            "--allow-privileged=true",
            "--profiling=false",
        )

    def _start_manager(self, binaries: Binaries) -> None:
        self._manager = self._child(
            "kube-controller-manager",
            binaries.kube_controller_manager,
            f"--kubeconfig={self.kubeconfig(CONTROLLERS)}",
            f"--controllers={','.join(self._controllers)}",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=false",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        )

    def _child(self, name: str, *argv: str | Path) -> Child:
        return Child(name, argv, log=self.folder / f"{name}.log", env={"GOGC": "200"})

    def _await_ready(self, child: Child) -> bool:
        return self._answers(child, f"{self.server}/readyz")

    def _answers(self, child: Child, url: str) -> bool:
        """True when `url` is 200, False when the port was taken."""
        headers = {"Authorization": f"Bearer {self.user().token}"}
        end = time.monotonic() + START_SECONDS
        context = ssl.create_default_context(cafile=str(self.ca_file))
        with httpx.Client(verify=context, headers=headers, trust_env=False, timeout=5.0) as client:
            while time.monotonic() < end:
                if not child.running:
                    if any(words in child.output() for words in TAKEN):
                        return False
                    child.check_running()
                if _is_success(client, url):
                    child.check_running()
                    return True
                time.sleep(0.05)
        child.kill()
        raise ChildFailed(f"{child.name} is not ready after {START_SECONDS:g} s: {child.last_words()}")


def _is_success(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).is_success
    except httpx.TransportError:  # it does not listen yet
        return False
