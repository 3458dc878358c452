"""The control machine: etcd, the API server, controllers and scheduler, as command lines."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from noctaya_apiserver.pki import Pki

from .addresses import Addresses
from .layout import Layout
from .users import MANAGER, PROVISIONER, SCHEDULER

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
ETCD_URL: Final = "http://127.0.0.1:2379"
"""In a network namespace of its own no port is taken."""
KUBELET_CLIENT: Final = "kubelet-client"
FRONT_PROXY: Final = "front-proxy"
PORT: Final = 6443

Programs = Mapping[str, Path]


def server_url(addresses: Addresses) -> str:
    """The API server, for this machine and for nodes."""
    return f"https://{addresses.control}:{PORT}"


def pki(layout: Layout, addresses: Addresses) -> Pki:
    """Certificates that the control plane needs."""
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc.cluster.local")
    return Pki(
        layout.pki,
        names=(*names, addresses.api_service, addresses.control),
        clients={
            KUBELET_CLIENT: ("kube-apiserver", ("system:masters",)),
            FRONT_PROXY: (FRONT_PROXY, ()),
        },
    )


def etcd(programs: Programs, folder: Path) -> list[str]:
    """Its data is not worth waiting for a disk."""
    peer = "http://127.0.0.1:2380"
    return [
        str(programs[ETCD]),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(programs: Programs, layout: Layout, addresses: Addresses, certificates: Pki) -> list[str]:
    """With aggregation: KEDA's metrics are an API of their own, reached by the addresses of its pods."""
    return [
        str(programs[API_SERVER]),
        f"--etcd-servers={ETCD_URL}",
        f"--advertise-address={addresses.control}",
        "--bind-address=0.0.0.0",
        f"--secure-port={PORT}",
        f"--service-cluster-ip-range={addresses.services}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--tls-cert-file={certificates.certificate}",
        f"--tls-private-key-file={certificates.key}",
        f"--client-ca-file={certificates.ca_file}",
        f"--token-auth-file={layout.pki / 'tokens.csv'}",
        f"--kubelet-client-certificate={certificates.client_certificate(KUBELET_CLIENT)}",
        f"--kubelet-client-key={certificates.client_key(KUBELET_CLIENT)}",
        "--kubelet-preferred-address-types=InternalIP",
        "--enable-aggregator-routing=true",
        f"--requestheader-client-ca-file={certificates.ca_file}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={certificates.client_certificate(FRONT_PROXY)}",
        f"--proxy-client-key-file={certificates.client_key(FRONT_PROXY)}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={certificates.service_accounts_public}",
        f"--service-account-signing-key-file={certificates.service_accounts}",
        "--profiling=false",
    ]


def controller_manager(
    programs: Programs, layout: Layout, addresses: Addresses, certificates: Pki
) -> list[str]:
    """With an autoscaler that looks every 5 s instead of 15, as tests of scaling want it."""
    config = layout.user_config(MANAGER)
    return [
        str(programs[MANAGER]),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        f"--root-ca-file={certificates.ca_file}",
        f"--service-account-private-key-file={certificates.service_accounts}",
        f"--service-cluster-ip-range={addresses.services}",
        f"--cluster-cidr={addresses.pods}",
        "--allocate-node-cidrs=false",  # a node's pods have the network of its number, not of its arrival
        "--horizontal-pod-autoscaler-sync-period=5s",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--profiling=false",
    ]


def scheduler(programs: Programs, layout: Layout) -> list[str]:
    """As it is by default."""
    config = layout.user_config(SCHEDULER)
    return [
        str(programs[SCHEDULER]),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--leader-elect=false",
        "--profiling=false",
    ]


def volume_provisioner(layout: Layout) -> list[str]:
    """A process of ours, run by the Python that runs this."""
    config = layout.user_config(PROVISIONER)
    return [sys.executable, "-m", "noctaya_cluster.host.provisioner", str(config), str(layout.volumes)]
