"""Stand-in for KEDA: says that a ScaledObject is ready, makes its autoscaler, and scales when told to.

It writes what KEDA writes, under KEDA's own field manager, so that who owns `spec.replicas` can be seen.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from .client import MERGE, ApiClient, Object

MANAGER: Final = "keda"
SCALED_OBJECTS: Final = "/apis/keda.sh/v1alpha1/scaledobjects"


class FakeKeda:
    """What to do with each ScaledObject; give `seen` to a Follower of `SCALED_OBJECTS`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def seen(self, scaled_object: Object) -> None:
        """Report a new ScaledObject as ready, once."""
        metadata = scaled_object["metadata"]
        if "deletionTimestamp" in metadata or scaled_object.get("status", {}).get("conditions"):
            return
        path = f"/apis/keda.sh/v1alpha1/namespaces/{metadata['namespace']}/scaledobjects/{metadata['name']}"
        report_conditions(self._client, path, Ready="True", Active="False", Fallback="False", Paused="False")


def report_conditions(client: ApiClient, path: str, **conditions: str) -> None:
    """Write a ScaledObject's conditions, as type and status."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    written = [
        {"type": name, "status": status, "reason": "ScaledObjectReported", "message": f"{name} is {status}"}
        for name, status in conditions.items()
    ]
    status = {"conditions": written, "lastActiveTime": now}
    query = {"fieldManager": MANAGER}
    client.request("PATCH", f"{path}/status", {"status": status}, content_type=MERGE, **query)


def scale(client: ApiClient, *, namespace: str, deployment: str, replicas: int) -> None:
    """Set the replicas as KEDA does, through the Deployment's scale."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}/scale"
    client.request("PATCH", path, {"spec": {"replicas": replicas}}, content_type=MERGE, fieldManager=MANAGER)
