"""One id and one trace for a cold start, from the client's request to the first byte of its answer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from noctaya_api.activation_timeline import spans as phases_of
from noctaya_api.v1alpha1.llmservice_status import ActivationRecord
from noctaya_scenarios.chat import CHAT, Client
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.operators import leader
from noctaya_scenarios.release import NAMESPACE
from noctaya_scenarios.scene import Scene
from noctaya_scenarios.traces import Collector, Span, collector, traced
from noctaya_scenarios.turns import Turns

pytestmark = pytest.mark.first

TRACE_SECONDS = 90.0
"""Spans are sent every 5 s; a first byte is asked for at gateways every 15 s at the latest."""
GATEWAY, SCALER, OPERATOR = "noctaya-gateway", "noctaya-aggregate-scaler", "noctaya-operator"
REQUEST = f"POST {CHAT}"


def test_t1_one_trace_leads_from_the_request_to_the_first_byte_through_every_component(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    trace, sender = secrets.token_hex(16), secrets.token_hex(8)
    with (
        collector(lab.api, scene.namespace, reach=lab.reach) as collecting,
        turns.alone(),
        traced(lab.release, collecting.endpoint, gateways=lab.gateways),
    ):
        # Time for the operator to look in between: who sees a success only can't tell when KEDA was told.
        runtime = scene.runtime(STUB_STARTUP_DELAY="3s")
        idle = scene.deploy(runtime=runtime, scaling={"scaleDownStabilization": "60s"})
        client = Client(idle.host, idle.port, headers={"traceparent": f"00-{trace}-{sender}-01"})
        answer = client.ask(tokens=3)
        assert answer.status == 200, answer
        record = await_first_byte(scene)
        spans = await_spans(scene, collecting, trace, record)
        operator, told = leader(lab), scene.stub(answer.pod)["traceparent"]
        lines = access_lines(scene)
        gateways, scalers = scene.ready_pods("gateway"), scene.ready_pods("scaler")

    assert {answer.headers["x-noctaya-activation-id"], record["id"]} == {trace}
    (line,) = lines
    assert (line["activation_id"], line["trace_id"], line["status"]) == (trace, trace, 200)

    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans), "a span was sent twice"
    orphans = [span for span in spans if span.parent_id not in {*by_id, sender}]
    assert not orphans
    request = only(spans, GATEWAY, REQUEST)
    assert request.parent_id == sender
    inside = [span for span in spans if span.parent_id == request.span_id]
    assert sorted((span.of, span.name) for span in inside) == [
        (SCALER, "activation.told"),
        (GATEWAY, "activation"),
        (GATEWAY, "admission"),
        (GATEWAY, "upstream"),
        (OPERATOR, "activation"),
    ]
    whole = only(spans, OPERATOR, "activation")
    below = {span.name: span for span in spans if span.parent_id == whole.span_id}
    assert set(below) == phases(record), "the trace tells the phases that the status tells"
    assert "activation.first_byte" in below
    assert request.begin <= below["activation.first_byte"].end <= request.end
    assert told == f"00-{trace}-{only(spans, GATEWAY, 'upstream').span_id}-01"

    waits = [only(spans, GATEWAY, "activation"), only(spans, SCALER, "activation.told"), whole]
    assert [span.attributes["noctaya.activation.id"] for span in waits] == [trace] * 3
    service = {"k8s.namespace.name": scene.namespace, "noctaya.llmservice": "chat"}
    assert service.items() <= request.resource.items()
    assert service.items() <= waits[1].resource.items()
    assert service.items() <= whole.attributes.items()
    assert whole.attributes["k8s.pod.name"] == answer.pod
    assert request.resource["k8s.pod.name"] in gateways
    assert waits[1].resource["k8s.pod.name"] in scalers
    assert whole.resource["k8s.pod.name"] == operator
    assert whole.resource["k8s.namespace.name"] == NAMESPACE


def await_first_byte(scene: Scene) -> dict[str, Any]:
    """The record of the activation once it is whole, with its times in their order."""
    status = scene.await_status(
        lambda found: "firstByte" in (found.get("lastActivation") or {}), within=TRACE_SECONDS
    )
    record: dict[str, Any] = status["lastActivation"]
    assert record["outcome"] == "Succeeded"
    steps = ("requested", "kedaTold", "ready", "firstByte")
    moments = [datetime.fromisoformat(record[step]) for step in steps]
    assert moments == sorted(moments), record
    return record


def await_spans(scene: Scene, collecting: Collector, trace: str, record: dict[str, Any]) -> list[Span]:
    """Every span of the trace, once all that are expected have come."""
    wanted = {(OPERATOR, name) for name in phases(record)}
    wanted |= {(OPERATOR, "activation"), (SCALER, "activation.told"), (GATEWAY, REQUEST)}
    scene.until(
        lambda: wanted <= {(span.of, span.name) for span in collecting.spans(trace)},
        within=TRACE_SECONDS,
        what=f"the collector has every span of {trace}, which are {sorted(wanted)}",
    )
    return collecting.spans(trace)


def phases(record: dict[str, Any]) -> set[str]:
    """Names of the spans that a record in the status asks for."""
    parsed = ActivationRecord.model_validate(record)
    return {f"activation.{name}" for name, _, _ in phases_of(parsed)}


def access_lines(scene: Scene) -> list[dict[str, Any]]:
    """What the access logs of the gateways hold of model requests."""
    lines = "\n".join(scene.log(pod, "gateway") for pod in scene.ready_pods("gateway")).splitlines()
    parsed = [json.loads(line) for line in lines if line.startswith("{")]
    return [each for each in parsed if each.get("logger") == "access" and each.get("path") == CHAT]


def only(spans: Sequence[Span], of: str, name: str) -> Span:
    """The span of that program and name."""
    (found,) = (span for span in spans if (span.of, span.name) == (of, name))
    return found
