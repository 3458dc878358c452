"""Whether the cluster works, asked of its API."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any, Final

import httpx
import yaml

from .. import keda
from ..conditions import is_true
from ..errors import ClusterError
from .addons import SYSTEM
from .addresses import Addresses
from .control import API_SERVER, server_url
from .layout import CONTROL, NODES, Layout
from .machines import last_words

API_SECONDS: Final = 120.0
"""Ready after 3 s on an idle machine; this is for a busy one."""
ALL_SECONDS: Final = 300.0


def wait_until(
    look: Callable[[], bool], *, within: float, what: Callable[[], str], every: float = 0.1
) -> None:
    """Return when `look` is true. Raises ClusterError with `what` after `within` seconds."""
    end = time.monotonic() + within
    while not look():
        if time.monotonic() > end:
            raise ClusterError(f"{what()} (after {within:g} s)")
        time.sleep(every)


class Probe:
    """Looks at one cluster."""

    def __init__(self, layout: Layout, addresses: Addresses) -> None:
        self._layout = layout
        self._url = server_url(addresses)

    def await_api(self) -> None:
        """Return when the API server is ready."""
        log = self._layout.logs / f"{CONTROL}.{API_SERVER}.log"
        with self._client() as client:
            wait_until(
                lambda: _get(client, "/readyz") is not None,
                within=API_SECONDS,
                what=lambda: f"the API server is not ready: {last_words(log)}",
            )

    def await_all(self) -> None:
        """Return when nodes, DNS and KEDA are ready."""
        with self._client() as client:
            wait_until(
                lambda: not _faults(client),
                within=ALL_SECONDS,
                what=lambda: "; ".join(_faults(client)),
                every=0.25,
            )

    def faults(self) -> list[str]:
        """What is not ready."""
        with self._client() as client:
            return _faults(client)

    def faults_after(self, seconds: float) -> list[str]:
        """What is still not ready when that time is over; returns as soon as nothing is."""
        end = time.monotonic() + seconds
        while (faults := self.faults()) and time.monotonic() < end:
            time.sleep(0.5)
        return faults

    def cordoned(self) -> list[str]:
        """Nodes that take no pods because somebody said so."""
        with self._client() as client:
            nodes = _items(client, "/api/v1/nodes")
        return [node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")]

    def api_answers(self) -> bool:
        """Whether the API server is ready now."""
        with self._client() as client:
            return _get(client, "/readyz") is not None

    def _client(self) -> httpx.Client:
        config = yaml.safe_load(self._layout.kubeconfig.read_text())
        token = config["users"][0]["user"]["token"]
        context = ssl.create_default_context(cafile=str(self._layout.pki / "ca.crt"))
        return httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {token}"},
            verify=context,
            trust_env=False,
            timeout=5.0,
        )


def _get(client: httpx.Client, path: str) -> httpx.Response | None:
    try:
        answer = client.get(path)
    except httpx.TransportError:
        return None
    return answer if answer.is_success else None


def _items(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    answer = _get(client, path)
    return answer.json()["items"] if answer is not None else []


def _faults(client: httpx.Client) -> list[str]:
    if _get(client, "/readyz") is None:
        return ["the API server is not ready"]
    ready = {
        node["metadata"]["name"]
        for node in _items(client, "/api/v1/nodes")
        if is_true(node.get("status", {}), "Ready")
    }
    faults = [f"{name} is not ready" for name in NODES if name not in ready]
    system = _items(client, f"/apis/apps/v1/namespaces/{SYSTEM}/deployments")
    if not any(is_true(each.get("status", {}), "Available") for each in system):
        faults.append("cluster DNS is not available")
    deployments = _items(client, f"/apis/apps/v1/namespaces/{keda.NAMESPACE}/deployments")
    faults += [f"KEDA's {name} is not available" for name in keda.unavailable(deployments)]
    # Asked itself: its APIService is Available some seconds before requests get through.
    if _get(client, keda.METRICS_PATH) is None:
        faults.append("the external metrics API is not available")
    return faults
