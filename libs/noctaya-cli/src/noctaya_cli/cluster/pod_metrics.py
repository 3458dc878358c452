"""Numbers of gateways and scalers, from their Pods through the API server's proxy.

It takes the right `get pods/proxy`. What a Pod answers is not trusted: what is no number is left out.
"""

from __future__ import annotations

import math
import re
from typing import Final

from noctaya_api import names

from noctaya_cli.cluster.access import Object, Reader, core_path

_SAMPLE: Final = re.compile(r"(noctaya_\w+(?:\{[^\n]*\})?) (\S+)")


def read_metrics(cluster: Reader, pod: Object, port: int) -> dict[str, float]:
    """Samples of a Pod by name, with their labels as they are written. Raises ClusterError."""
    meta = pod.get("metadata") or {}
    where = core_path("pods", str(meta.get("namespace")))
    return parse_samples(cluster.text(f"{where}/{meta.get('name')}:{port}/proxy{names.PATH_METRICS}"))


def parse_samples(text: str) -> dict[str, float]:
    """Noctaya's samples of a page of metrics, as far as one can count with them."""
    found = {}
    for line in text.splitlines():
        if (sample := _SAMPLE.match(line)) is None:
            continue
        try:
            value = float(sample[2])
        except ValueError:
            continue
        if math.isfinite(value):
            found[sample[1]] = value
    return found


def pods_by_service(pods: list[Object]) -> dict[tuple[str, str], list[Object]]:
    """Pods of gateways or scalers that stay, by namespace and service."""
    found: dict[tuple[str, str], list[Object]] = {}
    for pod in pods:
        meta = pod.get("metadata") or {}
        labels = meta.get("labels") or {}
        service = labels.get(names.LABEL_SCALER) or labels.get(names.LABEL_GATEWAY)
        if not meta.get("deletionTimestamp"):
            found.setdefault((str(meta.get("namespace")), str(service)), []).append(pod)
    return found


def name_of(pod: Object) -> str:
    """Name of a Pod."""
    return str((pod.get("metadata") or {}).get("name"))
