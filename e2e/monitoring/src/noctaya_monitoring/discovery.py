"""Targets for Prometheus from an API server, with the labels of its own Kubernetes discovery.

Debian builds Prometheus without that discovery, so this does for the role `endpointslice` what the
relabelings of a ServiceMonitor need: one target for each address and port of a slice, with the labels of its
Service and Pod.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from noctaya_apiserver.client import ApiClient, Object
from noctaya_apiserver.follower import Follower

SLICES: Final = "/apis/discovery.k8s.io/v1/endpointslices"
OF_SERVICE: Final = "kubernetes.io/service-name"
META: Final = "__meta_kubernetes_"

Target = dict[str, Any]


class Discovery:
    """Keeps a file for Prometheus' `file_sd_configs` as the EndpointSlices are, until `stop`.

    Args:
        client: the API server, for this alone.
        file: is replaced as a whole at each change.
    """

    def __init__(self, client: ApiClient, file: Path) -> None:
        self.file = file
        self._client = client
        self._found: dict[tuple[str, str], list[Target]] = {}
        self._follower = Follower(client, SLICES, self._seen)

    def start(self) -> None:
        """Begin."""
        self._write()
        self._follower.start()

    def stop(self) -> None:
        """End; raises what ended it before."""
        self._follower.stop()

    def _seen(self, endpoints: Object) -> None:
        metadata = endpoints["metadata"]
        name = metadata.get("labels", {}).get(OF_SERVICE)
        path = f"/api/v1/namespaces/{metadata['namespace']}/services/{name}"
        service = self._client.find(path) if name else None
        found = list(targets(endpoints, service)) if service is not None else []
        self._found[metadata["namespace"], metadata["name"]] = found
        self._write()

    def _write(self) -> None:
        draft = self.file.with_suffix(".draft")
        draft.write_text(json.dumps([each for found in self._found.values() for each in found]))
        draft.replace(self.file)


def targets(endpoints: Mapping[str, Any], service: Mapping[str, Any]) -> Iterator[Target]:
    """The targets of one slice, ready or not."""
    metadata = service["metadata"]
    labels = {f"{META}namespace": metadata["namespace"], f"{META}service_name": metadata["name"]}
    for name, value in (metadata.get("labels") or {}).items():
        labels[f"{META}service_label_{sanitized(name)}"] = value
        labels[f"{META}service_labelpresent_{sanitized(name)}"] = "true"
    for endpoint in endpoints.get("endpoints") or []:
        behind = endpoint.get("targetRef") or {}
        whose = {
            f"{META}endpointslice_address_target_kind": behind.get("kind", ""),
            f"{META}endpointslice_address_target_name": behind.get("name", ""),
        }
        for port in endpoints.get("ports") or []:
            named = {f"{META}endpointslice_port_name": port.get("name") or ""}
            yield {
                "targets": [f"{address}:{port['port']}" for address in endpoint["addresses"]],
                "labels": labels | whose | named,
            }


def sanitized(name: str) -> str:
    """A label of Kubernetes as a part of a label of Prometheus."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)
