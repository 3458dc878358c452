"""Kinds of the Kubernetes API and the paths they are served at.

Kinds are named here instead of discovered: the operator knows exactly which ones it uses, and a discovery
that fails for one broken aggregated API must not stop it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


class UnknownKind(LookupError):
    """No resource is known for an object's apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version; `group` is empty for the core API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or `v1` for the core API."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """URL path; without a namespace the collection over all namespaces."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/" + "/".join(quote(part, safe="") for part in parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
PVCS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
PDBS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
HPAS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

BUILT_IN: tuple[Resource, ...] = (
    PODS,
    SERVICES,
    SECRETS,
    CONFIGMAPS,
    PVCS,
    NAMESPACES,
    DEPLOYMENTS,
    REPLICA_SETS,
    JOBS,
    PDBS,
    HPAS,
    ENDPOINT_SLICES,
    LEASES,
    EVENTS,
    STORAGE_CLASSES,
    CUSTOM_RESOURCE_DEFINITIONS,
)


def resource_of(obj: Mapping[str, Any], resources: Iterable[Resource] = BUILT_IN) -> Resource:
    """The resource an object belongs to, by its apiVersion and kind.

    Raises:
        UnknownKind: it is none of `resources`.
    """
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    for resource in resources:
        if resource.kind == kind and resource.api_version == api_version:
            return resource
    raise UnknownKind(f"no resource is known for kind {kind!r} of {api_version!r}")
