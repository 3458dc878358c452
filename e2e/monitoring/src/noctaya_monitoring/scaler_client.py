"""KEDA and a kubelet for one service: follows its scaler, scales its Deployment, gets its model ready.

It listens as KEDA does, on StreamIsActive. The model server, a stub, runs all the time; gateways find its
address, as they would by DNS, while its Pod is ready. That is enough for gateways and operator to see a cold
start as it is in a cluster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
from noctaya_api.externalscaler import externalscaler_pb2 as pb
from noctaya_api.externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from noctaya_apiserver.client import ApiClient, Object, Refused
from noctaya_apiserver.follower import PASSING
from noctaya_apiserver.keda_stand_in import SCALED_OBJECTS, report_conditions, scale
from noctaya_apiserver.nodes import FakeNode

AGAIN: Final = 0.2
"""Seconds until a stream that ended is opened again, or a Pod is looked for again."""
COOLDOWN: Final = 2.0
"""Seconds without demand until the model goes; KEDA has scaleDownStabilization for that."""
T = TypeVar("T")
CALL: Final[Any] = {"metricName": "pending", "targetValue": "10"}


class ScalerClient:
    """Two threads that follow one scaler until `stop`: one listens, one acts.

    Args:
        client: the API server, for this alone.
        node: gets Pods ready.
        namespace, service: whose scaler it is.
        address: of the scaler.
        backend: address of the model server.
        endpoints: file that gateways find it in.
    """

    def __init__(
        self,
        client: ApiClient,
        node: FakeNode,
        *,
        namespace: str,
        service: str,
        address: str,
        backend: str,
        endpoints: Path,
    ) -> None:
        self._client = client
        self._node = node
        self._namespace = namespace
        self._service = service
        self._address = address
        self._backend = backend
        self._endpoints = endpoints
        self._stopping = threading.Event()
        self._told = (False, time.monotonic())
        self._active = False
        self._error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._run, args=(step,), name=f"KEDA of {service}", daemon=True)
            for step in (self._listen, self._act)
        ]
        self.load_seconds: float | None = 0.0
        """How long the model takes to load; None until it is said."""

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; raises what ended it before."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(10.0)
        if self._error is not None:
            raise self._error

    def _run(self, step: Callable[[], None]) -> None:
        try:
            while not self._stopping.is_set():
                step()
                self._stopping.wait(AGAIN)
        except Exception as error:  # noqa: BLE001  it belongs to the thread that waits for us
            self._error = error

    def _listen(self) -> None:
        """Hear what one stream says until it ends."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(self._address, options=options) as channel:
            stub: Any = ExternalScalerStub(channel)  # type: ignore[no-untyped-call]
            ref = pb.ScaledObjectRef(name=self._service, namespace=self._namespace, scalerMetadata=CALL)
            stream = stub.StreamIsActive(ref)
            threading.Thread(target=self._cancel, args=(stream,), daemon=True).start()
            try:
                for answer in stream:
                    self._told = (answer.result, time.monotonic())
            except grpc.RpcError:  # the scaler went, or is not there yet
                return

    def _cancel(self, stream: Any) -> None:
        while stream.is_active():
            if self._stopping.wait(AGAIN):
                stream.cancel()

    def _act(self) -> None:
        """Scale up at once, down when nothing was wanted for a while."""
        wanted, since = self._told
        if wanted is self._active or (not wanted and time.monotonic() - since < COOLDOWN):
            return
        self._active = wanted
        if not wanted:
            self._found("")
        group, _, plural = SCALED_OBJECTS.rpartition("/")
        path = f"{group}/namespaces/{self._namespace}/{plural}/{self._service}"
        report_conditions(
            self._client, path, Ready="True", Active=str(wanted), Fallback="False", Paused="False"
        )
        scale(self._client, namespace=self._namespace, deployment=self._service, replicas=int(wanted))
        if wanted:
            self._load()
        else:
            self._wait(lambda: self._pod() is None)

    def _load(self) -> None:
        """Get the backend's Pod ready, and the model with it; another Pod if that one went meanwhile."""
        while (pod := self._wait(self._pod)) is not None:
            seconds = self._wait(lambda: None if self.load_seconds is None else (self.load_seconds,))
            if seconds is None or self._stopping.wait(*seconds):
                return
            try:
                self._node.loaded(pod)
            except Refused as error:
                if error.status not in PASSING:
                    raise
            else:
                self._found(self._backend)
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

    def _found(self, backend: str) -> None:
        """Have gateways find this address, or none."""
        draft = self._endpoints.with_suffix(".draft")
        draft.write_text(backend)
        draft.replace(self._endpoints)
