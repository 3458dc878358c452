"""What a usable cluster has besides Kubernetes itself: cluster DNS, storage classes, rights of nodes."""

from __future__ import annotations

from typing import Any, Final

from noctaya_parts.versions import COREDNS

from .addresses import Addresses

Object = dict[str, Any]

DNS_IMAGE: Final = f"registry.k8s.io/coredns/coredns:v{COREDNS}"
PROVISIONER: Final = "noctaya.io/folder"
STANDARD: Final = "standard"
SHARED: Final = "noctaya-shared"
SYSTEM: Final = "kube-system"

COREFILE: Final = """cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        ttl 5
    }
    prometheus :9153
    reload
}
.:53 {
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
    reload
}
"""
"""A name outside the cluster does not exist, and a client learns so at once."""


def addons(addresses: Addresses) -> list[Object]:
    """All objects, in an order in which they can be made."""
    return [*_dns(addresses.dns), *_storage_classes()]


def _storage_classes() -> list[Object]:
    return [
        _storage_class(STANDARD, default=True, mode="node"),
        _storage_class(SHARED, default=False, mode="shared"),
    ]


def _storage_class(name: str, *, default: bool, mode: str) -> Object:
    """`node`: the volume is where its first pod is. `shared`: the nodes are one machine."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": name,
            "annotations": {"storageclass.kubernetes.io/is-default-class": str(default).lower()},
        },
        "provisioner": PROVISIONER,
        "parameters": {"mode": mode},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


def _dns(address: str) -> list[Object]:
    labels = {"k8s-app": "kube-dns"}
    role = "system:coredns"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named("coredns")},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["endpoints", "services", "pods", "namespaces"],
                    "verbs": ["list", "watch"],
                },
                {
                    "apiGroups": ["discovery.k8s.io"],
                    "resources": ["endpointslices"],
                    "verbs": ["list", "watch"],
                },
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "coredns", "namespace": SYSTEM}],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _named("coredns"),
            "data": {"Corefile": COREFILE},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**_named("kube-dns"), "labels": labels},
            "spec": {
                "clusterIP": address,
                "selector": labels,
                "ports": [
                    {"name": "dns", "port": 53, "protocol": "UDP"},
                    {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                ],
            },
        },
        _dns_deployment(labels),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _named("coredns"),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        },
    ]


def _dns_deployment(labels: dict[str, str]) -> Object:
    container = {
        "name": "coredns",
        "image": DNS_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"containerPort": 53, "protocol": "UDP", "name": "dns"},
            {"containerPort": 53, "protocol": "TCP", "name": "dns-tcp"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}},
        "resources": {"requests": {"cpu": "20m", "memory": "40Mi"}, "limits": {"memory": "200Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**_named("coredns"), "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "priorityClassName": "system-cluster-critical",
                    "serviceAccountName": "coredns",
                    "dnsPolicy": "Default",
                    "topologySpreadConstraints": [spread],
                    "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
                    "containers": [container],
                    "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
                },
            },
        },
    }


def _named(name: str) -> Object:
    return {"name": name, "namespace": SYSTEM}
