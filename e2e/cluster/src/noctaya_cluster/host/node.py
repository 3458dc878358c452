"""A node: containerd, kubelet, kube-proxy and kube-router, as configuration and command lines.

The paths are the usual ones, since a node has a file tree of its own where they matter; only what is big, and
what must outlive a process, is in the node's folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from .addresses import Addresses
from .control import Programs, server_url
from .layout import Layout
from .machines import MEMORY, OVER
from .users import PROXY, ROUTER

CONTAINERD: Final = "containerd"
KUBELET: Final = "kubelet"
SOCKET: Final = "/run/containerd/containerd.sock"
PAUSE_IMAGE: Final = "noctaya/pause:1"
CNI_PLUGINS: Final = Path("/usr/lib/cni")
"""Where Debian's package puts them; /opt/cni/bin is everyone else's."""
KERNEL_SETTINGS: Final = {
    "/proc/sys/vm/overcommit_memory": "1\n",
    "/proc/sys/vm/panic_on_oom": "0\n",
    "/proc/sys/kernel/panic": "10\n",
    "/proc/sys/kernel/panic_on_oops": "1\n",
    "/proc/sys/kernel/keys/root_maxkeys": "1000000\n",
    "/proc/sys/kernel/keys/root_maxbytes": "25000000\n",
}
"""What kubelet wants the kernel to be like. It finds files that say so; the kernel stays as it is."""


@dataclass(frozen=True)
class Node:
    """One node's configuration.

    Args:
        number: counted from 1; its networks follow from it.
        name: the hostname.
        layout: of the cluster.
        addresses: of the cluster.
    """

    number: int
    name: str
    layout: Layout
    addresses: Addresses

    @property
    def folder(self) -> Path:
        """For its files."""
        return self.layout.machine(self.name)

    def private(self) -> dict[str, Path | str]:
        """Folders of its own, for Machine."""
        return {
            "/run": MEMORY,
            "/var/log": self.folder / "log",
            "/var/lib": OVER,  # /var/lib/cni and /var/lib/kubelet are made there, never on this machine
            "/var/lib/kubelet": self.folder / "kubelet",
        }

    def write(self, snapshotter: str) -> None:
        """Write every configuration file."""
        cni = self.folder / "cni"
        cni.mkdir(parents=True, exist_ok=True)
        (cni / "10-pods.conflist").write_text(json.dumps(self.cni_config(), indent=1))
        (self.folder / "containerd.toml").write_text(self.containerd_config(snapshotter))
        (self.folder / "kubelet.yaml").write_text(yaml.safe_dump(self.kubelet_config()))
        # Nobody outside is asked: what the cluster does not know does not exist.
        (self.folder / "resolv.conf").write_text(f"nameserver {self.addresses.dns}\n")

    def cni_config(self) -> dict[str, Any]:
        """Pods on a bridge; addresses stay what they are between nodes, which NetworkPolicies need."""
        return {
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "ipMasq": False,
                    "hairpinMode": True,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": self.addresses.pods_of(self.number)}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                        "dataDir": str(self.folder / "addresses"),
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        }

    def containerd_config(self, snapshotter: str) -> str:
        """TOML of version 2, which containerd 1.6, 1.7 and 2 read."""
        return f"""version = 2
root = "{self.folder / "containerd"}"
state = "/run/containerd"
oom_score = 0
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
path = "{self.folder / "containerd-opt"}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
disable_apparmor = true
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{self.folder / "cni"}"
"""

    def kubelet_config(self) -> dict[str, Any]:
        """A KubeletConfiguration that asks little of the machine."""
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.layout.pki / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "clusterDNS": [self.addresses.dns],
            "clusterDomain": "cluster.local",
            "resolvConf": str(self.folder / "resolv.conf"),
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,
            # A full disk or little memory of a developer's machine is no reason to evict.
            "evictionHard": {
                "memory.available": "50Mi",
                "nodefs.available": "1%",
                "nodefs.inodesFree": "1%",
                "imagefs.available": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            # Secrets reach pods within seconds; the default is a minute.
            "syncFrequency": "10s",
            "volumePluginDir": str(self.folder / "volume-plugins"),
            "registryPullQPS": 0,
            "eventRecordQPS": 0,
        }

    def containerd(self) -> list[str]:
        """Its command line."""
        return [CONTAINERD, "--config", str(self.folder / "containerd.toml")]

    def kubelet(self, programs: Programs) -> list[str]:
        """Its command line."""
        return [
            str(programs[KUBELET]),
            f"--config={self.folder / 'kubelet.yaml'}",
            f"--kubeconfig={self.layout.user_config(self.name)}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.addresses.node(self.number)}",
        ]

    def proxy(self, programs: Programs) -> list[str]:
        """kube-proxy; the connection tracker's limits are the machine's, so they stay."""
        return [
            str(programs[PROXY]),
            f"--kubeconfig={self.layout.user_config(PROXY)}",
            f"--hostname-override={self.name}",
            f"--cluster-cidr={self.addresses.pods}",
            "--proxy-mode=iptables",
            "--conntrack-max-per-core=0",
            "--conntrack-min=0",
            "--conntrack-tcp-timeout-established=0s",
            "--conntrack-tcp-timeout-close-wait=0s",
            "--iptables-min-sync-period=100ms",
        ]

    def router(self, programs: Programs) -> list[str]:
        """kube-router as nothing but a firewall: it enforces NetworkPolicies for the node's pods."""
        return [
            str(programs[ROUTER]),
            f"--kubeconfig={self.layout.user_config(ROUTER)}",
            f"--master={server_url(self.addresses)}",
            f"--hostname-override={self.name}",
            f"--service-cluster-ip-range={self.addresses.services}",
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            "--run-loadbalancer=false",
        ]
