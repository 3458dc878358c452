"""KEDA and a kubelet for one service: follows its scaler, scales its Deployment, gets its model ready.

It listens as KEDA does, on StreamIsActive; what a model server is, the stub, runs all the time and says that
it is healthy when it is told to. That is enough for gateways and operator to see a cold start as it is in a
cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import grpc
import httpx
from noctaya_api.externalscaler import externalscaler_pb2 as pb
from noctaya_api.externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from noctaya_apiserver.client import ApiClient, Object, Refused
from noctaya_apiserver.follower import PASSING
from noctaya_apiserver.keda_stand_in import SCALED_OBJECTS, report_conditions, scale
from noctaya_apiserver.nodes import FakeNode

AGAIN: Final = 0.2
"""Seconds until a stream that ended is opened again, or a Pod is looked for again."""
T = TypeVar("T")
CALL: Final[Any] = {"metricName": "pending", "targetValue": "10"}


class ScalerClient:
    """A thread that follows one scaler until `stop`.

    Args:
        client: the API server, for this thread alone.
        node: gets Pods ready.
        namespace, service: whose scaler it is.
        address: of the scaler.
        backend: URL of the stub.
    """

    def __init__(
        self, client: ApiClient, node: FakeNode, *, namespace: str, service: str, address: str, backend: str
    ) -> None:
        self._client = client
        self._node = node
        self._namespace = namespace
        self._service = service
        self._address = address
        self._backend = backend
        self._stopping = threading.Event()
        self._active = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"KEDA of {service}", daemon=True)
        self.load_seconds: float | None = 0.0
        """How long the model takes to load; None for ever."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; raises what ended it before."""
        self._stopping.set()
        self._thread.join(10.0)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._follow()
                self._stopping.wait(AGAIN)
        except Exception as error:  # noqa: BLE001  it belongs to the thread that waits for us
            self._error = error

    def _follow(self) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(self._address, options=options) as channel:
            stub: Any = ExternalScalerStub(channel)  # type: ignore[no-untyped-call]
            ref = pb.ScaledObjectRef(name=self._service, namespace=self._namespace, scalerMetadata=CALL)
            stream = stub.StreamIsActive(ref)
            watcher = threading.Thread(target=self._cancel, args=(stream,), daemon=True)
            watcher.start()
            try:
                for answer in stream:
                    self._become(answer.result)
            except grpc.RpcError:  # the scaler went, or is not there yet
                return

    def _cancel(self, stream: Any) -> None:
        while stream.is_active():
            if self._stopping.wait(AGAIN):
                stream.cancel()

    def _become(self, active: bool) -> None:
        if active is self._active:
            return
        self._active = active
        if not active:
            self._control(healthy=False)
        group, _, plural = SCALED_OBJECTS.rpartition("/")
        path = f"{group}/namespaces/{self._namespace}/{plural}/{self._service}"
        report_conditions(
            self._client, path, Ready="True", Active=str(active), Fallback="False", Paused="False"
        )
        scale(self._client, namespace=self._namespace, deployment=self._service, replicas=int(active))
        if active:
            self._load()
        else:
            self._wait(lambda: self._pod() is None)

    def _load(self) -> None:
        """Get the backend's Pod ready, and the model with it; another Pod if that one went meanwhile."""
        while (pod := self._wait(self._pod)) is not None:
            if self.load_seconds is None or self._stopping.wait(self.load_seconds):
                return
            try:
                self._node.loaded(pod)
            except Refused as error:
                if error.status not in PASSING:
                    raise
            else:
                self._control(healthy=True)
                return

    def _wait(self, look: Callable[[], T]) -> T | None:
        """The first true value that `look` gives, None when we are to stop."""
        while not (found := look()):
            if self._stopping.wait(AGAIN):
                return None
        return found

    def _pod(self) -> Object | None:
        """The backend's Pod, once it runs and unless it is on its way out."""
        label = f"serving.noctaya.io/llmservice={self._service}"
        pods = self._client.items(f"/api/v1/namespaces/{self._namespace}/pods", labelSelector=label)
        living = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
        return next((pod for pod in living if "podIP" in pod["status"]), None)

    def _control(self, *, healthy: bool) -> None:
        answer = httpx.post(f"{self._backend}/control", json={"healthy": healthy}, trust_env=False)
        answer.raise_for_status()
