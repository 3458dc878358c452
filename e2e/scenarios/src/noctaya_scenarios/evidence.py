"""What a namespace looks like when something did not happen, on one page: part of the failure's message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import httpx
from noctaya_apiserver import ApiClient, Refused

Object = dict[str, Any]

SERVICES: Final = "/apis/serving.noctaya.io/v1alpha1/namespaces/{}/llmservices"
SCALED: Final = "/apis/keda.sh/v1alpha1/namespaces/{}/scaledobjects"
AUTOSCALERS: Final = "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/{}/deployments"
PODS: Final = "/api/v1/namespaces/{}/pods"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
EVENTS_SHOWN: Final = 15
LINES_SHOWN: Final = 8


def account(api: ApiClient, namespace: str) -> str:
    """One page about a namespace. Never raises: it is told within another failure."""
    parts: list[tuple[str, Callable[[], Iterable[str]]]] = [
        ("services", lambda: map(_service_line, api.items(SERVICES.format(namespace)))),
        ("scaled objects", lambda: map(_conditions_line, api.items(SCALED.format(namespace)))),
        ("autoscalers", lambda: map(_autoscaler_line, api.items(AUTOSCALERS.format(namespace)))),
        ("deployments", lambda: map(_deployment_line, api.items(DEPLOYMENTS.format(namespace)))),
        ("pods", lambda: map(_pod_line, api.items(PODS.format(namespace)))),
        ("events", lambda: map(_event_line, _events(api, namespace)[-EVENTS_SHOWN:])),
        ("logs", lambda: _log_lines(api, namespace)),
    ]
    lines = [f"--- namespace {namespace}"]
    for title, part in parts:
        try:
            lines += [f"{title}:", *(f"  {line}" for line in part())]
        except (Refused, httpx.HTTPError) as error:
            lines.append(f"{title}: can't be had: {error}")
    return "\n".join(lines)


def log_of(
    api: ApiClient, namespace: str, pod: str, container: str, *, lines: int = 0, previous: bool = False
) -> str:
    """A container's log, blank when there is none (any more)."""
    query = {"container": container, "previous": str(previous).lower()}
    if lines:
        query["tailLines"] = str(lines)
    try:
        return str(api.request("GET", f"{PODS.format(namespace)}/{pod}/log", accept="*/*", **query))
    except (Refused, httpx.HTTPError):
        return ""


def _containers(api: ApiClient, namespace: str) -> list[tuple[str, str]]:
    try:
        pods = api.items(PODS.format(namespace))
    except (Refused, httpx.HTTPError):
        return []
    return [
        (pod["metadata"]["name"], container["name"])
        for pod in pods
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    ]


def _events(api: ApiClient, namespace: str) -> list[Object]:
    return sorted(api.items(EVENTS.format(namespace)), key=_event_time)


def _event_time(event: Object) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("deprecatedLastTimestamp") or event.get("eventTime") or "")


def _conditions(obj: Object) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return ", ".join(
        f"{each['type']}={each['status']}/{each.get('reason', '')} ({each.get('message', '')})"
        for each in conditions
    )


def _service_line(service: Object) -> str:
    status = service.get("status") or {}
    seen = f"generation {service['metadata']['generation']}, observed {status.get('observedGeneration')}"
    return f"{service['metadata']['name']}: {status.get('phase')}, {seen}; {_conditions(service)}"


def _conditions_line(obj: Object) -> str:
    return f"{obj['metadata']['name']}: {_conditions(obj)}"


def _autoscaler_line(autoscaler: Object) -> str:
    status = autoscaler.get("status") or {}
    replicas = f"{status.get('currentReplicas')} -> {status.get('desiredReplicas')}"
    return f"{autoscaler['metadata']['name']}: {replicas}; {_conditions(autoscaler)}"


def _deployment_line(deployment: Object) -> str:
    status = deployment.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{deployment['spec']['replicas']} ready"
    return f"{deployment['metadata']['name']}: {ready}; {_conditions(deployment)}"


def _pod_line(pod: Object) -> str:
    status = pod["status"]
    containers = [
        f"{each['name']} {'ready' if each['ready'] else 'unready'} restarts={each['restartCount']} "
        f"{'/'.join(each.get('state') or {})}{_reason(each.get('state') or {})}"
        for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    ]
    leaving = " leaving" if "deletionTimestamp" in pod["metadata"] else ""
    where = pod["spec"].get("nodeName", "no node")
    return f"{pod['metadata']['name']} on {where}: {status['phase']}{leaving}; {'; '.join(containers)}"


def _reason(state: Object) -> str:
    for each in state.values():
        if each.get("reason"):
            return f" {each['reason']}: {each.get('message', '')}".rstrip(": ")
    return ""


def _event_line(event: Object) -> str:
    about = event.get("regarding") or {}
    note = str(event.get("note") or "")[:300]
    return (
        f"{_event_time(event)} {event.get('reason')} {about.get('kind', '')}/{about.get('name', '')}: {note}"
    )


def _log_lines(api: ApiClient, namespace: str) -> list[str]:
    found = []
    for pod, container in _containers(api, namespace):
        text = log_of(api, namespace, pod, container, lines=LINES_SHOWN)
        found += [f"{pod} {container}| {line[:400]}" for line in text.splitlines()]
    return found
