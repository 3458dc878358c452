"""How this machine gets to a Service: by its own address where that is routed, else by a port of a node."""

from __future__ import annotations

import socket
from typing import Final

from noctaya_api import names
from noctaya_apiserver import ApiClient

TRY_SECONDS: Final = 2.0


class Unreachable(Exception):
    """Nothing of the cluster can be reached from here."""


class Reach:
    """Finds the address of a service's endpoint. Looks once which way works. Raises Unreachable."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        spec = api.get("/api/v1/namespaces/default/services/kubernetes")["spec"]
        self._direct = _answers(spec["clusterIP"], spec["ports"][0]["port"])
        self._node = "" if self._direct else _first_address(api)

    def endpoint(self, namespace: str, service: str, *, port: int = names.SERVICE_PORT) -> tuple[str, int]:
        """Host and port of a Service's port."""
        found = self._api.get(f"/api/v1/namespaces/{namespace}/services/{service}")
        if self._direct:
            return found["spec"]["clusterIP"], port
        return self._node, self._node_port(found, port)

    def _node_port(self, service: dict[str, object], port: int) -> int:
        """Of a NodePort Service beside it, made on first use; it goes with its namespace."""
        metadata, spec = service["metadata"], service["spec"]
        assert isinstance(metadata, dict) and isinstance(spec, dict)
        wanted = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"{metadata['name']}-{port}-test", "namespace": metadata["namespace"]},
            "spec": {
                "type": "NodePort",
                "selector": spec["selector"],
                "ports": [each for each in spec["ports"] if each["port"] == port],
            },
        }
        made = self._api.apply(wanted)
        found: int = made["spec"]["ports"][0]["nodePort"]
        return found


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=TRY_SECONDS):
            return True
    except OSError:
        return False


def _first_address(api: ApiClient) -> str:
    for node in api.items("/api/v1/nodes"):
        for address in node["status"]["addresses"]:
            if address["type"] == "InternalIP" and _answers(address["address"], 10250):
                return str(address["address"])
    raise Unreachable(
        "neither Service addresses nor nodes can be reached from this machine; run the scenarios on one "
        "with a route to the cluster's nodes"
    )
