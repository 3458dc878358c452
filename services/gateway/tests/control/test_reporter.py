from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from noctaya_api.demand.report import DemandReport
from noctaya_api.demand.signal import DemandSignal
from noctaya_api.process.token_file import TokenFile
from noctaya_gateway import reporter as reporter_module
from noctaya_gateway.activation import Activation, Outcome
from noctaya_gateway.admission import Admission
from noctaya_gateway.delivery import Delivery
from noctaya_gateway.demand import DemandMeter
from noctaya_gateway.metrics import GatewayMetrics
from noctaya_gateway.reporter import Reporter
from noctaya_gateway.timeline import ActivationTimeline

from .servers import hang_up, status, until

TOKEN = "t" * 43


class Aggregator:
    """A keep-alive server that answers reports with the statuses it is told; 0 hangs, -1 hangs up."""

    def __init__(self) -> None:
        self.status = 204
        self.reports: list[DemandReport] = []
        self.per_connection: Counter[int] = Counter()
        self.authorizations: list[str] = []
        self.activations: list[tuple[str, str]] = []
        self.connections = 0
        self.open = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
                body = await reader.readexactly(int(headers["content-length"]))
                self.reports.append(DemandReport.model_validate(json.loads(body)))
                self.authorizations.append(headers["authorization"])
                named = headers.get("x-noctaya-activation-id", ""), headers.get("traceparent", "")
                self.activations.append(named)
                self.per_connection[number] += 1
                if self.status == -1:
                    break
                if self.status:
                    writer.write(status(self.status))
        await hang_up(writer)
        self.open -= 1


class Origin:
    """The trace of a request."""

    trace_id = "0af7651916cd43dd8448eb211c80319c"
    root = f"00-{trace_id}-b7ad6b7169203331-01"


class Rig:
    def __init__(self, aggregator: Aggregator, token: Path) -> None:
        loop = asyncio.get_running_loop()
        self.aggregator = aggregator
        self.token = token
        self.metrics = GatewayMetrics()
        self.admission = Admission(100)
        activation = Activation(timers=loop, timeout=100, grace=0, is_ready=lambda: True)
        self.meter = DemandMeter(
            admission=self.admission, activation=activation, signal=DemandSignal(), timers=loop
        )
        self.admission.notify(self.meter.update)
        self.delivery = Delivery(clock=loop.time, demand=lambda: self.meter.effective, channel="test")
        self.timeline = ActivationTimeline()
        self.reporter = Reporter(
            url=aggregator.url,
            gateway_id="gateway-a",
            token=TokenFile(token, min_length=32),
            meter=self.meter,
            delivery=self.delivery,
            metrics=self.metrics,
            timeline=self.timeline,
        )

    async def reports(self, count: int) -> None:
        goal = len(self.aggregator.reports) + count
        await until(lambda: len(self.aggregator.reports) >= goal)


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(reporter_module, "BEAT", 0.05)
    monkeypatch.setattr(reporter_module, "RETRY", 0.01)
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    aggregator = Aggregator()
    server = await asyncio.start_server(aggregator.serve, "127.0.0.1", 0)
    aggregator.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/demand"
    made = Rig(aggregator, token)
    made.reporter.start()
    yield made
    await made.reporter.withdraw()
    made.meter.close()
    await until(lambda: aggregator.open == 0)
    server.close()
    await server.wait_closed()


async def test_reports_carry_token_identity_and_a_growing_sequence(rig: Rig) -> None:
    await rig.reports(3)
    sequences = [report.sequence for report in rig.aggregator.reports]
    assert sequences == list(range(1, len(sequences) + 1))
    (member,) = {report.member_id for report in rig.aggregator.reports}
    prefix, _, suffix = member.partition("/")
    assert prefix == "gateway-a"
    assert len(suffix) == 24
    assert int(suffix, 16) >= 0
    assert set(rig.aggregator.authorizations) == {f"bearer {TOKEN}"}
    assert rig.aggregator.connections == 1, "healthy reports share one connection"


async def test_two_reporters_of_one_gateway_are_two_members(rig: Rig) -> None:
    assert Rig(rig.aggregator, rig.token).reporter.member_id != rig.reporter.member_id


async def test_a_change_is_reported_before_the_next_beat(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.reports(1)
    monkeypatch.setattr(reporter_module, "BEAT", 3600.0)
    for demand in (1, 2):
        rig.admission.admit()
        await until(lambda: rig.aggregator.reports[-1].demand == demand)  # noqa: B023


async def test_t1_a_report_names_the_activation_it_is_of_and_tells_when_it_was_taken(rig: Rig) -> None:
    await rig.reports(1)
    with rig.timeline.asked_by(Origin()):
        rig.timeline.begun()
    await rig.reports(2)
    assert "told" not in rig.timeline.moments(), "a report without demand tells of no activation"
    slot = rig.admission.admit()
    await until(lambda: "told" in rig.timeline.moments())
    slot.release()
    rig.timeline.ended(Outcome.READY, "")
    rig.admission.admit()
    await rig.reports(3)
    by_demand = zip(rig.aggregator.reports, rig.aggregator.activations, strict=True)
    named = [named for report, named in by_demand if report.demand > 0]
    assert named[0] == (Origin.trace_id, Origin.root)
    assert named[-1] == ("", ""), "after the activation demand is only demand"
    assert rig.aggregator.activations[0] == ("", "")


async def test_t1_a_report_that_failed_did_not_tell(rig: Rig) -> None:
    rig.aggregator.status = 503
    rig.timeline.begun()
    rig.admission.admit()
    await until(lambda: rig.aggregator.activations[-1:] == [(rig.timeline.activation_id, "")])
    await rig.reports(2)
    assert "told" not in rig.timeline.moments()
    rig.aggregator.status = 204
    await until(lambda: "told" in rig.timeline.moments())


@pytest.mark.parametrize("code", [200, 404, 429, 503])
async def test_g12_an_error_status_is_never_followed_by_a_report_on_the_same_connection(
    rig: Rig, code: int
) -> None:
    await rig.reports(1)
    rig.aggregator.status = code
    before = rig.aggregator.connections
    await rig.reports(4)
    assert rig.aggregator.connections >= before + 3
    assert all(count == 1 for number, count in rig.aggregator.per_connection.items() if number > before)
    assert rig.metrics.reconnects["report"] >= 3
    assert rig.metrics.reports["error"] >= 3

    rig.aggregator.status = 204
    successes = rig.metrics.reports["success"]
    await until(lambda: rig.metrics.reports["success"] > successes)


@pytest.mark.parametrize("behaviour", [0, -1])
async def test_g12_a_report_that_times_out_or_breaks_makes_a_new_connection(
    rig: Rig, behaviour: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter_module, "TIMEOUT", 0.1)
    await rig.reports(1)
    rig.aggregator.status = behaviour
    before = rig.aggregator.connections
    await until(lambda: rig.aggregator.connections >= before + 2)
    assert rig.metrics.reports["error"] >= 1


async def test_g12_undelivered_demand_is_seen(rig: Rig) -> None:
    rig.aggregator.status = 404
    rig.admission.admit()
    await until(lambda: rig.delivery.undelivered_seconds > 0)
    assert rig.delivery.last_error == "status 404"
    rig.aggregator.status = 204
    await until(lambda: rig.delivery.undelivered_seconds == 0)


async def test_a_rotated_token_is_used_from_the_next_report_on(rig: Rig) -> None:
    await rig.reports(1)
    rig.token.write_text("n" * 43)
    await until(lambda: rig.aggregator.authorizations[-1] == "bearer " + "n" * 43)


async def test_the_other_line_of_the_token_file_is_tried_after_a_401(rig: Rig) -> None:
    rig.token.write_text("n" * 43 + "\n" + TOKEN + "\n")
    rig.aggregator.status = 401
    await until(lambda: len(set(rig.aggregator.authorizations)) >= 2)


async def test_without_a_token_nothing_is_sent_and_it_counts_as_an_error(rig: Rig) -> None:
    await rig.reports(1)
    rig.token.unlink()
    errors = rig.metrics.reports["error"]
    await until(lambda: rig.metrics.reports["error"] > errors)
    assert "token file" in rig.delivery.last_error


async def test_g8_the_report_is_withdrawn_last(rig: Rig) -> None:
    rig.admission.admit()
    await until(lambda: bool(rig.aggregator.reports) and rig.aggregator.reports[-1].demand == 1)
    assert await rig.reporter.withdraw()
    last = rig.aggregator.reports[-1]
    assert last.demand == 0
    assert last.sequence == max(report.sequence for report in rig.aggregator.reports)
    count = len(rig.aggregator.reports)
    await asyncio.sleep(0.15)
    assert len(rig.aggregator.reports) == count


async def test_g8_a_withdrawal_nobody_takes_does_not_hold_up_the_stop(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter_module, "TIMEOUT", 0.1)
    await rig.reports(1)
    rig.aggregator.status = 0
    assert not await asyncio.wait_for(rig.reporter.withdraw(), 5)


async def test_proxy_settings_are_ignored(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await rig.reports(2)
    assert rig.metrics.reports["error"] == 0
