"""What has to be there before any service can work: Kubernetes, the CRDs, KEDA, cluster DNS, storage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from noctaya_api import names

from noctaya_cli.cluster.access import NotThere, Object, Reader, core_path
from noctaya_cli.cluster.finding import Finding, good, problem, warning

OLDEST_KUBERNETES: Final = (1, 30)
"""As the charts' `kubeVersion` says."""
CRDS: Final = ("llmservices", "inferenceruntimes")
METRICS_API: Final = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
CRD_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


def check_kubernetes(cluster: Reader) -> Iterator[Finding]:
    """The version of the API server."""
    version = cluster.get("/version")
    text = str(version.get("gitVersion") or "")
    parts = re.match(r"v(\d+)\.(\d+)", text)
    if parts and (int(parts[1]), int(parts[2])) < OLDEST_KUBERNETES:
        yield problem(
            "kubernetes", f"the API server is {text}", remedy="Noctaya needs Kubernetes 1.30 or newer."
        )
    else:
        yield good("kubernetes", f"API server {text or 'of an unknown version'}")


def check_crds(cluster: Reader) -> Iterator[Finding]:
    """Both custom resources, accepted and served."""
    for plural in CRDS:
        name = f"{plural}.{names.GROUP}"
        try:
            found = cluster.get(f"{CRD_PATH}/{name}")
        except NotThere:
            yield problem(
                "crds", f"{name} is not installed", remedy="Install charts/operator; it brings the CRDs."
            )
            continue
        if condition(found, "Established") != "True":
            yield problem(
                "crds",
                f"{name} is not served",
                remedy=f"kubectl describe crd {name} says why it was not accepted.",
            )
            continue
        yield good("crds", f"{name} is served")


def check_keda(cluster: Reader) -> Iterator[Finding]:
    """KEDA's kind, its operator and its metrics API."""
    try:
        cluster.get(f"{CRD_PATH}/scaledobjects.keda.sh")
    except NotThere:
        yield problem(
            "keda",
            "KEDA is not installed",
            remedy="Install KEDA 2.15 or newer; services go on within a minute.",
        )
        return
    operators = cluster.items(
        core_path("deployments", group="apps/v1"), labels="app.kubernetes.io/name=keda-operator"
    )
    operators = operators or cluster.items(
        core_path("deployments", group="apps/v1"), labels="app=keda-operator"
    )
    if not operators:
        yield warning(
            "keda",
            "no Deployment of KEDA's operator was found",
            remedy="If KEDA runs under other labels this is fine; else install it again.",
        )
    for each in operators:
        meta, ready = each.get("metadata") or {}, (each.get("status") or {}).get("readyReplicas") or 0
        where = f"{meta.get('namespace')}/{meta.get('name')}"
        if ready:
            yield good("keda", f"{where}: {ready} ready, {_image(each)}")
        else:
            yield problem(
                "keda",
                f"{where} has no ready Pod, so nothing scales from zero",
                remedy=f"kubectl -n {meta.get('namespace')} describe deployment {meta.get('name')}; "
                "held requests wait until it is back.",
            )
    try:
        api = cluster.get(METRICS_API)
    except NotThere:
        yield problem(
            "keda",
            "the external metrics API is not registered, so nothing scales above one replica",
            remedy="Install KEDA's metrics adapter.",
        )
        return
    if condition(api, "Available") == "True":
        yield good("keda", "the external metrics API answers")
    else:
        yield problem(
            "keda",
            f"the external metrics API is not available: {said(api, 'Available')}",
            remedy="Look at KEDA's metrics adapter; until it answers nothing scales above one replica.",
        )


def check_dns(cluster: Reader) -> Iterator[Finding]:
    """Endpoints behind the cluster's DNS Service."""
    services = cluster.items(core_path("services", "kube-system"), labels="k8s-app=kube-dns")
    if not services:
        yield warning(
            "dns",
            "no Service labelled k8s-app=kube-dns in kube-system",
            remedy="If cluster DNS is run elsewhere this is fine: gateways find their backends by it.",
        )
    for service in services:
        name = str((service.get("metadata") or {}).get("name"))
        slices = cluster.items(
            core_path("endpointslices", "kube-system", group="discovery.k8s.io/v1"),
            labels=f"kubernetes.io/service-name={name}",
        )
        ready = sum(
            1
            for each in slices
            for endpoint in each.get("endpoints") or []
            if (endpoint.get("conditions") or {}).get("ready") is not False
        )
        if ready:
            yield good("dns", f"{name}: {ready} endpoint{'s' if ready != 1 else ''} ready")
        else:
            yield problem(
                "dns",
                f"Service kube-system/{name} has no ready endpoint",
                remedy="Gateways can't find backends, KEDA can't find scalers: look at its Pods.",
            )


def check_storage(cluster: Reader, services: list[Object]) -> Iterator[Finding]:
    """A default StorageClass, and the classes that services name."""
    classes = cluster.items(core_path("storageclasses", group="storage.k8s.io/v1"))
    known = {str((each.get("metadata") or {}).get("name")) for each in classes}
    defaults = [
        str((each.get("metadata") or {}).get("name"))
        for each in classes
        if ((each.get("metadata") or {}).get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    if defaults:
        yield good("storage", f"default StorageClass {defaults[0]}")
    else:
        yield warning(
            "storage",
            "there is no default StorageClass",
            remedy="Each service needs `spec.cache.storageClassName`, or `strategy: None` or `HostPath`.",
        )
    for service in services:
        meta, wanted = service.get("metadata") or {}, wanted_class(service)
        where = f"{meta.get('namespace')}/{meta.get('name')}"
        if wanted and wanted not in known:
            listed = ", ".join(sorted(known)) or "none"
            yield problem(
                "storage",
                f"{where} asks for StorageClass {wanted}, which doesn't exist",
                remedy=f"Set spec.cache.storageClassName to one that does: {listed}.",
            )


def wanted_class(service: Object) -> str:
    """The StorageClass that a service's cache names; empty when it needs none, or takes the default."""
    cache = (service.get("spec") or {}).get("cache") or {}
    claimed = cache.get("strategy") in {None, "NodeLocalPVC", "SharedPVC"} and not cache.get("claimName")
    return str(cache.get("storageClassName") or "") if claimed else ""


def class_path(name: str) -> str:
    """Where a StorageClass is."""
    return f"{core_path('storageclasses', group='storage.k8s.io/v1')}/{quote(name, safe='')}"


def condition(obj: Object, kind: str) -> str:
    """Status of a condition, empty when it isn't there."""
    for each in (obj.get("status") or {}).get("conditions") or []:
        if each.get("type") == kind:
            return str(each.get("status") or "")
    return ""


def said(obj: Object, kind: str) -> str:
    """Message or reason of a condition."""
    for each in (obj.get("status") or {}).get("conditions") or []:
        if each.get("type") == kind:
            return str(each.get("message") or each.get("reason") or "no reason given")
    return "no condition yet"


def _image(deployment: Object) -> str:
    containers = (((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}).get(
        "containers"
    ) or []
    return str(containers[0].get("image")) if containers else "no container"
