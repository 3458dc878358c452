"""The defaults the API server writes into a Pod template, for comparing a rendered one with a stored one.

Only what the renderers can leave out is here. A default this misses makes two equal templates look
different, never the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from noctaya_api.quantity import canonical_quantity

from noctaya_operator.kube.objects import Object

_POD: Final[Object] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "securityContext": {},
}
_CONTAINER: Final[Object] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
_PROBE: Final[Object] = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_PROBES: Final = ("readinessProbe", "livenessProbe", "startupProbe")


def with_defaults(template: Mapping[str, Any]) -> Object:
    """A copy of a Pod template as the API server would store it."""
    filled: Object = deepcopy(dict(template))
    filled.get("metadata", {}).pop("creationTimestamp", None)
    pod = {**deepcopy(_POD), **filled.get("spec", {})}
    # The alias the API server keeps in step with the field below is of no meaning.
    pod.pop("serviceAccount", None)
    for kind in ("initContainers", "containers"):
        if kind in pod:
            pod[kind] = [_container(container) for container in pod[kind]]
    pod["volumes"] = [_volume(volume) for volume in pod.get("volumes", ())]
    pruned: Object = _pruned({**filled, "spec": pod})
    return pruned


def _container(container: Mapping[str, Any]) -> Object:
    filled = {**deepcopy(_CONTAINER), **container}
    filled.setdefault("imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    filled["ports"] = [{"protocol": "TCP", **port} for port in container.get("ports", ())]
    filled["resources"] = _resources(filled["resources"])
    for probe in _PROBES:
        if probe in filled:
            filled[probe] = _probe(filled[probe])
    for entry in filled.get("env", ()):
        reference = entry.get("valueFrom", {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    return filled


def _probe(probe: Mapping[str, Any]) -> Object:
    given = {name: value for name, value in probe.items() if value not in (0, None)}
    filled: Object = {**_PROBE, **given}
    if "httpGet" in filled:
        filled["httpGet"] = {"path": "/", "scheme": "HTTP", **filled["httpGet"]}
    if "grpc" in filled:
        filled["grpc"] = {"service": "", **filled["grpc"]}
    return filled


def _resources(resources: Mapping[str, Any]) -> Object:
    limits = {name: canonical_quantity(amount) for name, amount in (resources.get("limits") or {}).items()}
    requests = {
        name: canonical_quantity(amount) for name, amount in (resources.get("requests") or {}).items()
    }
    # A limit without a request is the request too.
    return {"limits": limits, "requests": {**limits, **requests}}


def _volume(volume: Mapping[str, Any]) -> Object:
    filled = deepcopy(dict(volume))
    if "hostPath" in filled:
        filled["hostPath"].setdefault("type", "")
    for kind in ("secret", "configMap", "downwardAPI"):
        if kind in filled:
            filled[kind].setdefault("defaultMode", 0o644)
    return filled


def _pull_policy(image: str) -> str:
    name = image.rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    return "Always" if name.partition(":")[2] in {"", "latest"} else "IfNotPresent"


def _pruned(value: Any) -> Any:
    """Without empty fields: Go leaves them out, and whether they are there means nothing."""
    if isinstance(value, dict):
        pruned = {name: _pruned(item) for name, item in value.items()}
        return {name: item for name, item in pruned.items() if item not in ("", None, [], {}, False)}
    return [_pruned(item) for item in value] if isinstance(value, list) else value
