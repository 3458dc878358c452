"""Every cache of the operator, and how an object in one leads to the service it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from noctaya_api import names

from noctaya_operator import pruning
from noctaya_operator.kinds import INFERENCE_RUNTIMES, LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.listwatch import Timing
from noctaya_operator.kube.objects import Key, Object, labels_of, metadata_of
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.kube.resources import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    HPAS,
    JOBS,
    PDBS,
    PODS,
    PVCS,
    SERVICES,
    STORAGE_CLASSES,
    Resource,
)

OURS: Final = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"
BY_SERVICE: Final = "service"
BY_RUNTIME: Final = "runtime"
BY_WISH: Final = "wish"
WRITTEN: Final = (DEPLOYMENTS, SERVICES, PVCS, JOBS, PDBS, SCALED_OBJECTS)
"""Kinds that the operator writes and watches. Secrets are written too, but never listed or watched."""
READ: Final = (PODS, ENDPOINT_SLICES, HPAS)
"""Kinds of which objects of a service are only read."""
OPTIONAL: Final = frozenset({HPAS, STORAGE_CLASSES})
"""Kinds whose absence from the operator's rights costs explanations, not function."""

_SELECTORS: Final[Mapping[Resource, str]] = {
    **dict.fromkeys((*WRITTEN, PODS), OURS),
    # EndpointSlices carry the labels of their Service; these are the public and the scaler Service.
    ENDPOINT_SLICES: f"{OURS},{names.LABEL_GATEWAY}",
    # Whether KEDA's own managed-by or ours ends up on its HPA depends on its version; this label stays.
    HPAS: names.LABEL_KEDA_SCALED_OBJECT,
}
_KEEP: Final[Mapping[Resource, Callable[[Object], Object]]] = {
    LLM_SERVICES: pruning.keep_custom,
    INFERENCE_RUNTIMES: pruning.keep_custom,
    **dict.fromkeys(WRITTEN, pruning.keep_written),
    PODS: pruning.keep_pod,
    ENDPOINT_SLICES: pruning.keep_slice,
    HPAS: pruning.keep_hpa,
    STORAGE_CLASSES: pruning.keep_class,
}


class Caches:
    """One reflector a kind.

    Args:
        client: the API server.
        namespaces: watch these only; None for all.
        timing: of the reflectors.
        on_failure: called with every failed list or watch.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        namespaces: Iterable[str] | None = None,
        timing: Timing | None = None,
        on_failure: Callable[[Resource, ApiError], None] | None = None,
    ) -> None:
        scopes = tuple(namespaces) if namespaces is not None else None
        self.reflectors: dict[Resource, Reflector] = {
            resource: Reflector(
                client,
                resource,
                namespaces=scopes,
                label_selector=_SELECTORS.get(resource),
                keep=keep,
                timing=timing,
                on_failure=on_failure,
            )
            for resource, keep in _KEEP.items()
        }
        for resource in (PODS, ENDPOINT_SLICES):
            self.reflectors[resource].add_index(BY_SERVICE, _service_index)
        services = self.reflectors[LLM_SERVICES]
        services.add_index(BY_RUNTIME, _resolved_runtime)
        services.add_index(BY_WISH, wishes)

    @property
    def unsynced(self) -> list[Resource]:
        """Kinds that were not listed yet and that the operator can't do without."""
        return [
            resource
            for resource, reflector in self.reflectors.items()
            if resource not in OPTIONAL and not reflector.synced.is_set()
        ]

    async def synced(self) -> None:
        """Wait until everything needed was listed."""
        for resource, reflector in self.reflectors.items():
            if resource not in OPTIONAL:
                await reflector.synced.wait()

    def get(self, resource: Resource, key: Key) -> Object | None:
        """One cached object."""
        return self.reflectors[resource].cache.get(key)

    def of_service(self, resource: Resource, key: Key) -> Sequence[Object]:
        """Pods or EndpointSlices of a service."""
        return self.reflectors[resource].cache.by_index(BY_SERVICE, str(key))

    def growing_classes(self) -> frozenset[str]:
        """Names of the StorageClasses whose volumes can grow, as far as that can be read."""
        return frozenset(
            str(metadata_of(each).get("name"))
            for each in self.reflectors[STORAGE_CLASSES].cache
            if each.get("allowVolumeExpansion") is True
        )

    def storage_classes(self) -> dict[str, bool] | None:
        """Names of the StorageClasses and whether each is the default; None when they can't be read."""
        reflector = self.reflectors[STORAGE_CLASSES]
        if not reflector.synced.is_set() or reflector.absent:
            return None
        default = "storageclass.kubernetes.io/is-default-class"
        return {
            str(metadata_of(each).get("name")): (metadata_of(each).get("annotations") or {}).get(default)
            == "true"
            for each in reflector.cache
        }


def service_of(obj: Object) -> Key | None:
    """The service that an object belongs to by its labels."""
    labels, namespace = labels_of(obj), metadata_of(obj).get("namespace")
    for label in (names.LABEL_LLMSERVICE, names.LABEL_GATEWAY, names.LABEL_SCALER):
        if labels.get(label) and namespace:
            return Key(str(namespace), labels[label])
    scaled_object = labels.get(names.LABEL_KEDA_SCALED_OBJECT)
    return Key(str(namespace), scaled_object) if scaled_object and namespace else None


def wishes(service: Object) -> Iterator[str]:
    """What a service wants of a runtime: `name:x`, or `vendor:x` for each."""
    wanted = _inside(_inside(service, "spec"), "runtime")
    if wanted.get("name"):
        yield f"name:{wanted['name']}"
    vendors = _inside(wanted, "selector").get("vendor")
    for vendor in vendors if isinstance(vendors, list) else ():
        yield f"vendor:{vendor}"


def _inside(obj: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """A field that ought to be a mapping; empty when it is something else."""
    value = obj.get(field)
    return value if isinstance(value, Mapping) else {}


def _service_index(obj: Object) -> Iterator[str]:
    key = service_of(obj)
    if key is not None:
        yield str(key)


def _resolved_runtime(service: Object) -> Iterator[str]:
    runtime = _inside(service, "status").get("resolvedRuntime")
    if runtime:
        yield str(runtime)
