"""Traces of a scenario: a collector in its namespace, the release told of it, the spans that came."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from noctaya_apiserver import ApiClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from noctaya_scenarios import span_receiver
from noctaya_scenarios.manifests import STUB_IMAGE
from noctaya_scenarios.reach import Reach
from noctaya_scenarios.release import Release
from noctaya_scenarios.waiting import until

Object = dict[str, Any]

NAME: Final = "collector"
READY_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Span:
    """One span as it was sent; ids in hexadecimal digits, blank where there is none, times in nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    begin: int
    end: int
    attributes: Mapping[str, object]
    resource: Mapping[str, object]

    @property
    def of(self) -> str:
        """The program that sent it."""
        return str(self.resource.get("service.name"))


class Collector:
    """A running collector.

    Args:
        api: of the cluster.
        namespace: where it runs; it goes with it.
        reach: how this machine gets to it.
    """

    def __init__(self, api: ApiClient, namespace: str, *, reach: Reach) -> None:
        self._namespace = namespace
        metadata = {"name": NAME, "namespace": namespace, "labels": {"app": NAME}}
        api.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod_spec()})
        port = {"name": "otlp-http", "port": span_receiver.PORT}
        spec = {"selector": {"app": NAME}, "ports": [port]}
        api.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        host, number = reach.endpoint(namespace, NAME, port=span_receiver.PORT)
        self._http = httpx.Client(base_url=f"http://{host}:{number}", trust_env=False, timeout=20)
        until(self._answers, within=READY_SECONDS, what=f"the collector of {namespace}")

    @property
    def endpoint(self) -> str:
        """Its URL for Pods."""
        return f"http://{NAME}.{self._namespace}.svc:{span_receiver.PORT}"

    def spans(self, trace_id: str) -> list[Span]:
        """All spans of a trace so far, in the order in which they began."""
        received: list[dict[str, str]] = self._http.get("/received").raise_for_status().json()
        messages = (base64.b64decode(each["message"]) for each in received)
        found = [span for message in messages for span in spans_of(message) if span.trace_id == trace_id]
        return sorted(found, key=lambda span: span.begin)

    def close(self) -> None:
        """Close the connection to it."""
        self._http.close()

    def _answers(self) -> bool:
        try:
            return self._http.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def collector(api: ApiClient, namespace: str, *, reach: Reach) -> Iterator[Collector]:
    """A collector of a namespace's own."""
    made = Collector(api, namespace, reach=reach)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def traced(release: Release, endpoint: str, *, gateways: int) -> Iterator[None]:
    """Within the block the release sends traces there; every gateway of the cluster rolls at both ends."""
    try:
        # One operator is rolled sooner than two.
        extra = [f"--set=tracing.endpoint={endpoint}", "--set=operator.replicas=1"]
        release.install(gateways=gateways, extra=extra)
        yield
    finally:
        release.install(gateways=gateways)


def spans_of(message: bytes) -> Iterator[Span]:
    """The spans of one message."""
    for sent in ExportTraceServiceRequest.FromString(message).resource_spans:
        resource = _plain(sent.resource.attributes)
        for scope in sent.scope_spans:
            yield from (_span(span, resource) for span in scope.spans)


def _span(span: trace_pb2.Span, resource: Mapping[str, object]) -> Span:
    return Span(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        begin=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_plain(span.attributes),
        resource=resource,
    )


def _plain(attributes: Any) -> dict[str, object]:
    found: dict[str, object] = {}
    for each in attributes:
        assert isinstance(each, KeyValue)
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, kind) if kind else None
    return found


def _pod_spec() -> Object:
    container: Object = {
        "name": NAME,
        "image": STUB_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-I", "-c", Path(span_receiver.__file__).read_text()],
        "ports": [{"containerPort": span_receiver.PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": span_receiver.PORT}, "periodSeconds": 1},
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
