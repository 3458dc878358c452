"""Defaults and canonical forms the real server puts into the kinds the operator writes.

Enough that code which takes a server default or `2Gi` instead of `2048Mi` for drift is found out here
already.
"""

from __future__ import annotations

from typing import Any

from noctaya_api.quantity import canonical_quantity

Object = dict[str, Any]


def with_defaults(obj: Object) -> Object:
    """Fill defaults in place; unknown kinds and odd shapes are left alone."""
    kind, spec = obj.get("kind"), obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    if kind == "Deployment":
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxSurge", "25%")
            rolling.setdefault("maxUnavailable", "25%")
        _template(spec.get("template"), restart="Always")
    elif kind == "Job":
        _job(obj, spec)
        _template(spec.get("template"), restart="Always")
    elif kind == "Pod":
        _pod(spec, restart="Always")
    elif kind == "Service":
        _service(spec)
    elif kind == "PersistentVolumeClaim":
        spec.setdefault("volumeMode", "Filesystem")
        _quantities(spec.get("resources"))
    return obj


def _job(obj: Object, spec: Object) -> None:
    uid = str(obj.get("metadata", {}).get("uid", ""))
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": obj["metadata"]["name"],
    }
    for name, value in (
        ("backoffLimit", 6),
        ("completionMode", "NonIndexed"),
        ("completions", 1),
        ("manualSelector", False),
        ("parallelism", 1),
        ("podReplacementPolicy", "TerminatingOrFailed"),
        ("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
        ("suspend", False),
    ):
        spec.setdefault(name, value)
    if isinstance(spec.get("template"), dict):
        found = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
        for name, value in labels.items():
            found.setdefault(name, value)


def _template(template: Any, *, restart: str) -> None:
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        _pod(template["spec"], restart=restart)


def _pod(spec: Object, *, restart: str) -> None:
    spec.setdefault("restartPolicy", restart)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or []:
            if isinstance(container, dict):
                _container(container)
    for volume in spec.get("volumes") or []:
        _volume(volume)


def _container(container: Object) -> None:
    image = str(container.get("image", ""))
    latest = "@" not in image and (image.endswith(":latest") or ":" not in image.rsplit("/", 1)[-1])
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    _quantities(container["resources"])
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for probe_name in ("readinessProbe", "livenessProbe", "startupProbe"):
        probe = container.get(probe_name)
        if isinstance(probe, dict):
            probe.setdefault("timeoutSeconds", 1)
            probe.setdefault("periodSeconds", 10)
            probe.setdefault("successThreshold", 1)
            probe.setdefault("failureThreshold", 3)
            if "httpGet" in probe:
                probe["httpGet"].setdefault("scheme", "HTTP")
                probe["httpGet"].setdefault("path", "/")
            if "grpc" in probe:
                probe["grpc"].setdefault("service", "")
    for variable in container.get("env") or []:
        if variable.get("value") == "":
            del variable["value"]  # an empty value is left out of what is stored
        source = variable.get("valueFrom") or {}
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")


def _volume(volume: Object) -> None:
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 420)
    for item in (volume.get("downwardAPI") or {}).get("items") or []:
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    empty = volume.get("emptyDir")
    if isinstance(empty, dict) and "sizeLimit" in empty:
        empty["sizeLimit"] = _canonical(empty["sizeLimit"])


def _service(spec: Object) -> None:
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("clusterIP", "10.0.0.1")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _quantities(resources: Any) -> None:
    if not isinstance(resources, dict):
        return
    for group in ("limits", "requests"):
        quantities = resources.get(group)
        if isinstance(quantities, dict):
            for name, value in quantities.items():
                quantities[name] = _canonical(value)


def _canonical(value: Any) -> Any:
    try:
        return canonical_quantity(value)
    except ValueError:
        return value
