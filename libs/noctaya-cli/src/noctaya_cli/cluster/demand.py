"""Demand and queue of services, read from their gateways through the API server's proxy.

It takes the right `get pods/proxy`. Without it, or while a gateway does not answer, the numbers are unknown
and the rest of the picture stands.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from noctaya_api import names

from noctaya_cli.cluster.access import ClusterError, NotAllowed, Object, Reader, core_path

AT_ONCE: Final = 8
"""Gateways asked at the same time: a fleet of hundreds in seconds, without a burst at the API server."""
_WANTED: Final = {
    "noctaya_gateway_demand": "demand",
    "noctaya_gateway_held": "held",
    "noctaya_gateway_pending": "pending",
    "noctaya_gateway_scaler_streams": "streams",
    'noctaya_gateway_rejections_total{reason="queue_full"}': "refused",
}


@dataclass(frozen=True, slots=True)
class GatewayNumbers:
    """What the gateways of one service say together."""

    demand: int
    held: int
    pending: int
    gateways: int
    """How many answered."""
    fullest: int = 0
    """Admitted requests of the gateway that has most: each has slots of its own."""
    refused: int = 0
    """Requests refused for a full queue since the gateways started."""
    streams: int = 0
    """Streams that KEDA has open to them; none when there is an aggregate scaler."""


class ProxyForbidden(Exception):
    """The user may not read from Pods through the API server."""


def read_demand(cluster: Reader, gateway_pods: list[Object]) -> dict[tuple[str, str], GatewayNumbers]:
    """Numbers by namespace and service name; services whose gateways don't answer are absent.

    Raises:
        ProxyForbidden: the user has no right to `pods/proxy`.
    """
    serving = [pod for pod in gateway_pods if _serves(pod)]
    found: dict[tuple[str, str], GatewayNumbers] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for pod, numbers in zip(serving, pool.map(lambda pod: _ask(cluster, pod), serving), strict=True):
            if numbers is None:
                continue
            key = (_meta(pod, "namespace"), service_of(pod))
            so_far = found.get(key, GatewayNumbers(0, 0, 0, 0))
            found[key] = GatewayNumbers(
                so_far.demand + numbers.get("demand", 0),
                so_far.held + numbers.get("held", 0),
                so_far.pending + numbers.get("pending", 0),
                so_far.gateways + 1,
                fullest=max(so_far.fullest, numbers.get("pending", 0)),
                refused=so_far.refused + numbers.get("refused", 0),
                streams=so_far.streams + numbers.get("streams", 0),
            )
    return found


def gateway_pods(cluster: Reader, namespace: str | None) -> list[Object]:
    """The Pods of all gateways of a namespace, of all of them with None."""
    labels = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY},{names.LABEL_GATEWAY}"
    return cluster.items(core_path("pods", namespace), labels=labels)


def streams_of(cluster: Reader, namespace: str, service: str, numbers: GatewayNumbers) -> int | None:
    """Streams that KEDA has open to a service: to its aggregate scaler, if it has one, else to its gateway.

    None when the scaler can't be asked.

    Raises:
        ClusterError: Pods can't be listed.
    """
    labels = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY},{names.LABEL_SCALER}={service}"
    scalers = cluster.items(core_path("pods", namespace), labels=labels)
    if not scalers:
        return numbers.streams
    answers = [_ask(cluster, pod, names.AGGREGATOR_PORT) for pod in scalers if _serves(pod)]
    heard = [answer.get("streams", 0) for answer in answers if answer is not None]
    return sum(heard) if heard else None


def service_of(pod: Object) -> str:
    """The service a gateway Pod belongs to."""
    labels = (pod.get("metadata") or {}).get("labels") or {}
    return str(labels.get(names.LABEL_GATEWAY) or "")


def parse_metrics(text: str) -> dict[str, int]:
    """The samples that are looked at."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in _WANTED:
            try:
                found[_WANTED[name]] = int(float(value))
            except (ValueError, OverflowError):  # `+Inf` is a number of Prometheus', too
                continue
    return found


def _ask(cluster: Reader, pod: Object, port: int = names.GATEWAY_PORT) -> dict[str, int] | None:
    namespace, name = _meta(pod, "namespace"), _meta(pod, "name")
    path = f"{core_path('pods', namespace)}/{name}:{port}/proxy{names.PATH_METRICS}"
    try:
        return parse_metrics(cluster.text(path))
    except NotAllowed as error:
        raise ProxyForbidden(str(error)) from error
    except ClusterError:
        return None


def _serves(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _meta(pod: Object, field: str) -> str:
    return str((pod.get("metadata") or {}).get(field) or "")
