"""T1: an activation is followed from the report that names it until KEDA was told."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import Any

import pytest
from noctaya_aggregate_scaler.activations import REMEMBERED, Activations
from noctaya_api.demand.signal import DemandState
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ID = b"0af7651916cd43dd8448eb211c80319c"
PARENT = b"00-" + ID + b"-b7ad6b7169203331-01"
BUSY, IDLE = DemandState(3, 7), DemandState(0, 8)


class Rig:
    def __init__(self) -> None:
        self.exporter, self.provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.now = 100.0
        self.activations = Activations(self.provider, wall=lambda: self.now)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(each.getMessage(), vars(each).get("activation_id", "")) for each in caplog.records]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_each_activation_is_one_line_reported_and_one_line_told(log: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    for _ in range(3):
        rig.activations.reported("gw/1", ID, None)
    rig.activations.told(IDLE)
    rig.now += 0.25
    for _ in range(3):
        rig.activations.told(BUSY)
    rig.activations.reported("gw/1", ID, None)
    assert lines(log) == [("activation reported", ID.decode()), ("activation told to KEDA", ID.decode())]
    assert vars(log.records[1])["seconds"] == 0.25
    assert not rig.exporter.get_finished_spans()


def test_the_span_lies_below_the_request_that_began_it() -> None:
    rig = Rig()
    rig.activations.reported("gw/1", ID, PARENT)
    rig.now += 0.5
    rig.activations.told(BUSY)
    (span,) = rig.exporter.get_finished_spans()
    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id) == (int(ID, 16), 0xB7AD6B7169203331)
    assert ((span.end_time or 0) - (span.start_time or 0)) == 500_000_000
    assert dict(span.attributes or {})["noctaya.activation.id"] == ID.decode()


@pytest.mark.parametrize("name", [None, b"", b"x" * 32, ID.upper(), ID + b"0", b"\n" + ID, b"0" * 31 + b"\n"])
def test_what_is_no_id_is_not_logged(name: bytes | None, log: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    rig.activations.reported("gw/1", name, b"garbage")
    rig.activations.told(BUSY)
    assert not log.records


def test_a_parent_that_is_none_makes_a_trace_of_its_own() -> None:
    rig = Rig()
    rig.activations.reported("gw/1", ID, b"\xffgarbage")
    rig.activations.told(BUSY)
    (span,) = rig.exporter.get_finished_spans()
    assert span.parent is None


def test_a_gateway_that_makes_up_ids_is_forgotten_in_order(log: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    for number in range(REMEMBERED + 10):
        rig.activations.reported("gw/1", b"%032x" % (number + 1), None)
    log.clear()
    rig.activations.told(BUSY)
    assert [name for _, name in lines(log)] == [f"{number + 1:032x}" for number in range(10, REMEMBERED + 10)]
    log.clear()
    rig.activations.told(BUSY)
    assert not log.records


@pytest.mark.parametrize("overrides", [{"expected_gateway_members": 1}])
async def test_t1_a_named_report_reaches_keda_under_its_name(
    scaler: Any, log: pytest.LogCaptureFixture
) -> None:
    async with scaler.keda() as keda, aclosing(keda.stream_is_active()) as stream:
        await scaler.report("gw/1", 1, 0)
        assert await anext(stream) is False
        headers = {"authorization": f"Bearer {'t' * 43}", "x-noctaya-activation-id": ID.decode()}
        body = {"memberID": "gw/1", "sequence": 2, "demand": 1}
        assert (await scaler.http.post("/v1/demand", json=body, headers=headers)).status_code == 204
        assert await anext(stream) is True
        assert await keda.is_active()
    assert [line for line in lines(log) if line[1]] == [
        ("activation reported", ID.decode()),
        ("activation told to KEDA", ID.decode()),
    ]
