"""What the Prometheus Operator makes of a ServiceMonitor: a scrape job with its labels. Pure.

A test that scraped with labels of its own would not see that ours are wrong. So Prometheus gets the Services
of the API server and chooses among them through the selectors and relabelings of `examples/observability`,
with the labels that the Prometheus Operator adds (`job`, `namespace`, `service`, `pod`, `endpoint`). Only the
address at the end is another one: a Pod of a control plane without nodes is a process on loopback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noctaya_monitoring.discovery import META, sanitized

Job = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the process behind an endpoint listens: `pod` is a regular expression."""

    namespace: str
    service: str
    address: str
    pod: str = ".*"


def jobs(
    monitors: Iterable[Mapping[str, Any]], *, found: Path, places: Iterable[Place], interval: str = "1s"
) -> list[Job]:
    """The scrape jobs of ServiceMonitors; endpoints without a place are dropped.

    Args:
        monitors: manifests.
        found: file of a `Discovery`.
        places: of the processes.
        interval: between two scrapes.
    """
    places = list(places)
    return [
        _job(monitor, number, endpoint, found=found, places=places, interval=interval)
        for monitor in monitors
        for number, endpoint in enumerate(monitor["spec"]["endpoints"])
    ]


def _job(
    monitor: Mapping[str, Any],
    number: int,
    endpoint: Mapping[str, Any],
    *,
    found: Path,
    places: list[Place],
    interval: str,
) -> Job:
    if monitor["spec"].get("namespaceSelector") != {"any": True}:
        raise ValueError(
            f"{monitor['metadata']['name']}: only monitors of every namespace are understood here"
        )
    return {
        "job_name": f"serviceMonitor/{monitor['metadata']['name']}/{number}",
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "metrics_path": endpoint.get("path", "/metrics"),
        "honor_labels": endpoint.get("honorLabels", False),
        "file_sd_configs": [{"files": [str(found)]}],
        "relabel_configs": [
            *_selected(monitor["spec"]["selector"]),
            _keep(f"{META}endpointslice_port_name", endpoint["port"]),
            *_labels(endpoint["port"]),
            *(_relabeling(each) for each in endpoint.get("relabelings", [])),
            *_places(places),
        ],
    }


def _selected(selector: Mapping[str, Any]) -> Iterable[Job]:
    for name, value in selector.get("matchLabels", {}).items():
        yield _keep(f"{META}service_label_{sanitized(name)}", re.escape(value))
    for each in selector.get("matchExpressions", []):
        if each["operator"] != "Exists":
            raise ValueError(f"operator {each['operator']} is not understood here")
        yield _keep(f"{META}service_labelpresent_{sanitized(each['key'])}", "true")


def _labels(port: str) -> Iterable[Job]:
    pod = f"{META}endpointslice_address_target"
    yield {
        "source_labels": [f"{pod}_kind", f"{pod}_name"],
        "regex": "Pod;(.*)",
        "target_label": "pod",
    }
    for source, target in (("namespace", "namespace"), ("service_name", "service"), ("service_name", "job")):
        yield {"source_labels": [f"{META}{source}"], "target_label": target}
    yield {"target_label": "endpoint", "replacement": port}


def _relabeling(given: Mapping[str, Any]) -> Job:
    names = {
        "sourceLabels": "source_labels",
        "targetLabel": "target_label",
        "regex": "regex",
        "replacement": "replacement",
        "action": "action",
    }
    return {names[name]: value for name, value in given.items()}


def _places(places: Iterable[Place]) -> Iterable[Job]:
    yield {"source_labels": ["__address__"], "target_label": "instance"}
    for place in places:
        yield {
            "source_labels": ["namespace", "service", "pod"],
            "regex": f"{re.escape(place.namespace)};{re.escape(place.service)};{place.pod}",
            "target_label": "__address__",
            "replacement": place.address,
        }
    yield _keep("__address__", r"127\.0\.0\.1:.*")


def _keep(label: str, regex: str) -> Job:
    return {"source_labels": [label], "regex": regex, "action": "keep"}
