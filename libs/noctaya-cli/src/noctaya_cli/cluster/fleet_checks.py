"""The services themselves: conditions, autoscaler, KEDA's stream, gateways, mixed versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noctaya_api import names

from noctaya_cli.cluster.access import ClusterError, NotAllowed, Object, Reader, core_path
from noctaya_cli.cluster.demand import gateway_pods, service_of
from noctaya_cli.cluster.finding import Finding, Level, good, problem, warning
from noctaya_cli.cluster.pod_metrics import name_of, pods_by_service, read_metrics
from noctaya_cli.cluster.remedies import QUEUE_FULL, remedy
from noctaya_cli.cluster.service_view import view_of

UNDELIVERED: Final = 5.0
"""Seconds a cold request's demand may be on its way; the gateway retries every 2 s."""


def check_services(services: list[Object]) -> Iterator[Finding]:
    """What the conditions of each service say."""
    if not services:
        yield good("services", "no LLMService yet")
    well = 0
    for each in services:
        view = view_of(each)
        where = f"{view.namespace}/{view.name}"
        for found in view.problems:
            advice = remedy(found.reason)
            yield problem(
                "services",
                f"{where}: {found.reason}: {' '.join(found.message.split())}",
                remedy=advice.action.replace("SERVICE", view.name)
                if advice
                else f"noctaya explain {view.name}",
            )
        if view.stale:
            yield warning(
                "services",
                f"{where}: its newest spec has not been looked at",
                remedy="Look at the operator's findings above.",
            )
        well += not view.problems
    if well:
        yield good("services", f"{well} of {len(services)} without a problem")


def check_streams(cluster: Reader, services: list[Object]) -> Iterator[Finding]:
    """Whether KEDA listens to each service's scaler, and whether demand gets through."""
    labels = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"
    aggregates = pods_by_service(cluster.items(core_path("pods"), labels=f"{labels},{names.LABEL_SCALER}"))
    gateways = pods_by_service(cluster.items(core_path("pods"), labels=f"{labels},{names.LABEL_GATEWAY}"))
    heard = 0
    for service in services:
        meta = service.get("metadata") or {}
        key = (str(meta.get("namespace")), str(meta.get("name")))
        fronts = [(pod, names.GATEWAY_PORT) for pod in gateways.get(key, ())]
        scalers = [(pod, names.AGGREGATOR_PORT) for pod in aggregates.get(key, ())]
        streams, unread = 0, False
        for pod, port in (*fronts, *scalers):
            try:
                numbers = read_metrics(cluster, pod, port)
            except NotAllowed:
                raise
            except ClusterError as error:
                unread = True
                what = f"{key[0]}/{key[1]}: Pod {name_of(pod)} could not be asked: {error}"
                yield Finding(area="demand", level=Level.UNKNOWN, what=what)
                continue
            streams += int(numbers.get("noctaya_gateway_scaler_streams", 0))
            waiting = numbers.get("noctaya_gateway_undelivered_demand_seconds", 0.0)
            slots = view_of(service).slots
            if port == names.GATEWAY_PORT and numbers.get("noctaya_gateway_pending", 0.0) >= slots:
                advice = remedy(QUEUE_FULL)
                yield problem(
                    "demand",
                    f"{key[0]}/{key[1]}: queue full: all {slots} slots of {name_of(pod)} are taken",
                    remedy=f"{advice.meaning} {advice.action}" if advice else "",
                )
            if waiting > UNDELIVERED:
                yield problem(
                    "demand",
                    f"{key[0]}/{key[1]}: demand of a cold request has waited {waiting:.0f} s for the scaler",
                    remedy=f"Look at Deployment {key[1]}-scaler and at NetworkPolicies for port 9091.",
                )
        heard += bool(streams)
        if (fronts or scalers) and not streams and not unread:
            yield problem(
                "demand",
                f"{key[0]}/{key[1]}: KEDA has no stream open: cold requests wait for its poll or for ever",
                remedy="KEDA's log names the service; usual causes are a NetworkPolicy on port 9090 and mTLS "
                "on one side.",
            )
    if heard:
        yield good("demand", f"KEDA listens to {heard} service{'s' if heard != 1 else ''}")


def check_gateways(cluster: Reader, services: list[Object]) -> Iterator[Finding]:
    """Ready gateways of each service, and their versions."""
    pods = gateway_pods(cluster, None)
    ready: dict[tuple[str, str], int] = {}
    images: dict[str, int] = {}
    for pod in pods:
        key = (str((pod.get("metadata") or {}).get("namespace")), service_of(pod))
        conditions = (pod.get("status") or {}).get("conditions") or []
        if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
            ready[key] = ready.get(key, 0) + 1
        for container in (pod.get("spec") or {}).get("containers") or []:
            if container.get("name") == names.CONTAINER_GATEWAY:
                images[str(container.get("image"))] = images.get(str(container.get("image")), 0) + 1
    for service in services:
        meta = service.get("metadata") or {}
        key = (str(meta.get("namespace")), str(meta.get("name")))
        if not ready.get(key):
            yield problem(
                "gateways",
                f"{key[0]}/{key[1]}: no gateway is ready, clients are refused",
                remedy=f"kubectl -n {key[0]} describe pods -l {names.LABEL_GATEWAY}={key[1]}",
            )
    if len(images) > 1:
        listed = ", ".join(f"{image} ({count})" for image, count in sorted(images.items()))
        yield warning(
            "versions",
            f"gateways run several images: {listed}",
            remedy="Fine during a rollout; else look at it.",
        )
    if ready:
        yield good("gateways", f"{sum(ready.values())} of {len(pods)} gateways ready")
