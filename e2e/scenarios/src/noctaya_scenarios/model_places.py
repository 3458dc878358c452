"""Where models come from, in a scenario's namespace: the stand-in's hub and registry, told over HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx
from noctaya_apiserver import ApiClient

from noctaya_scenarios.reach import Reach
from noctaya_scenarios.waiting import until

Object = dict[str, Any]

IMAGE: Final = "noctaya/model-hub:0.5.0"
NAME: Final = "hub"
PORT: Final = 8080
PORTS: Final = {"http": PORT, "cdn": 8081, "s3": 8082}
READY_SECONDS: Final = 60.0


class ModelPlaces:
    """A running stand-in.

    Args:
        api: of the cluster.
        namespace: where it runs; it goes with it.
        reach: how this machine gets to it.
    """

    def __init__(self, api: ApiClient, namespace: str, *, reach: Reach) -> None:
        self._namespace = namespace
        metadata = {"name": NAME, "namespace": namespace, "labels": {"app": NAME}}
        api.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod_spec()})
        ports = [{"name": name, "port": port} for name, port in PORTS.items()]
        spec = {"selector": {"app": NAME}, "ports": ports}
        api.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        host, port = reach.endpoint(namespace, NAME, port=PORT)
        self._http = httpx.Client(base_url=f"http://{host}:{port}/_hub", trust_env=False, timeout=20)
        until(self._answers, within=READY_SECONDS, what=f"the models' stand-in of {namespace}")

    @property
    def host(self) -> str:
        """Host and port by which Pods reach hub and registry."""
        return f"{NAME}.{self._namespace}.svc:{PORT}"

    @property
    def endpoint(self) -> str:
        """The hub's URL for Pods."""
        return f"http://{self.host}"

    @property
    def s3_endpoint(self) -> str:
        """The URL of the buckets for Pods."""
        return f"http://{NAME}.{self._namespace}.svc:{PORTS['s3']}"

    def repository(self, name: str, files: Mapping[str, Any], **options: Any) -> str:
        """Make a repository of the hub (or a commit, with `commit=True`). Gives the commit's hash."""
        return str(self._put(f"/repositories/{name}", {"files": dict(files), **options})["sha"])

    def artifact(self, name: str, files: Mapping[str, Any], **options: Any) -> str:
        """Push an OCI artifact. Gives its digest, with the algorithm."""
        return str(self._put(f"/artifacts/{name}", {"files": dict(files), **options})["digest"])

    def bucket(self, name: str, objects: Mapping[str, Any], **options: Any) -> None:
        """Make a bucket; `keys` are the secret keys of those who may read, by access key."""
        self._http.put(f"/buckets/{name}", json={"objects": dict(objects), **options}).raise_for_status()

    def fault(self, *, effect: Mapping[str, Any], **on: Any) -> None:
        """Put a fault in force."""
        self._http.post("/faults", json={"on": on, "effect": dict(effect)}).raise_for_status()

    def heal(self) -> None:
        """No more faults."""
        self._http.delete("/faults").raise_for_status()

    def requests(self, *routes: str) -> list[Object]:
        """What was asked of these routes and is answered, oldest first."""
        seen: list[Object] = self._http.get("/requests").raise_for_status().json()
        return [one for one in seen if one["route"] in routes]

    def close(self) -> None:
        """Close the control connection."""
        self._http.close()

    def _put(self, path: str, body: Mapping[str, Any]) -> Object:
        reply = self._http.put(path, json=dict(body))
        assert reply.status_code == 200, reply.text
        told: Object = reply.json()
        return told

    def _answers(self) -> bool:
        try:
            return self._http.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def model_places(api: ApiClient, namespace: str, *, reach: Reach) -> Iterator[ModelPlaces]:
    """A stand-in of a namespace's own."""
    places = ModelPlaces(api, namespace, reach=reach)
    try:
        yield places
    finally:
        places.close()


def pull_secret(registry: str, *, user: str, password: str) -> str:
    """The content of a pull Secret."""
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {registry: {"auth": encoded}}})


def _pod_spec() -> Object:
    container: Object = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": [],
        "ports": [{"containerPort": port} for port in PORTS.values()],
        "readinessProbe": {"httpGet": {"path": "/_hub/healthz", "port": PORT}, "periodSeconds": 1},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
