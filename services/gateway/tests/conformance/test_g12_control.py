"""G12: control connections heal, and undelivered demand is seen within seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import ONE_ENGINE, Start
from .harness.backend import Call, FakeBackend
from .harness.client import connected
from .harness.process import GatewayExitError, eventually
from .harness.rig import Rig
from .harness.wire import Wire

pytestmark = ONE_ENGINE

TOKEN = "t" * 43


async def accept(call: Call) -> None:
    call.send_head(b"204 No Content")


class Aggregator(FakeBackend):
    """The aggregator's report endpoint, with faults on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.script = accept

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(call.data) for call in self.calls]


@asynccontextmanager
async def reporting(start: Start, tmp_path: Path, **env: str) -> AsyncIterator[tuple[Rig, Aggregator]]:
    aggregator = Aggregator()
    await aggregator.start()
    token = tmp_path / "token"
    token.write_text(f" {TOKEN}\n")
    rig = await start(
        healthy=False,
        NOCTAYA_DEMAND_AGGREGATOR_URL=aggregator.url,
        NOCTAYA_DEMAND_AUTH_TOKEN_FILE=str(token),
        NOCTAYA_GATEWAY_ID="gw-1",
        **env,
    )
    try:
        yield rig, aggregator
    finally:
        await aggregator.stop()


async def last_demand(aggregator: Aggregator, demand: int) -> bool:
    return bool(aggregator.reports and aggregator.reports[-1]["demand"] == demand)


async def test_g12_reports_have_the_contracts_form(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path) as (_, aggregator):
        call = await aggregator.call(2)
        assert call.head.start_line.startswith(b"POST /v1/demand ")
        assert call.head.one("authorization") == b"Bearer " + TOKEN.encode()
        assert (call.head.one("content-type") or b"").startswith(b"application/json")
        first, second = aggregator.reports[:2]
        assert set(first) == {"memberID", "sequence", "demand"}
        prefix, _, random = first["memberID"].partition("/")
        assert prefix == "gw-1"
        assert len(random) == 24
        int(random, 16)
        assert second["memberID"] == first["memberID"]
        assert [first["sequence"], second["sequence"]] == [1, 2]
        assert first["demand"] == 0


async def test_g12_a_change_is_reported_at_once_and_repeated_every_two_seconds(
    start: Start, tmp_path: Path
) -> None:
    async with reporting(start, tmp_path) as (rig, aggregator):
        await aggregator.call()
        async with connected(rig.gateway.port) as client:
            client.request()
            await eventually(lambda: last_demand(aggregator, 1), within=2)
            count = len(aggregator.calls)
            await aggregator.call(count + 2, within=8)
            gap = aggregator.calls[-1].at - aggregator.calls[-2].at
            assert 1.5 < gap < 4
    sequences = [report["sequence"] for report in aggregator.reports]
    assert sequences == list(range(1, len(sequences) + 1))


async def test_g12_no_scaler_port_is_opened_in_reporter_mode(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path) as (rig, _):
        assert rig.gateway.scaler_port == 0


async def test_g12_a_connection_that_answers_404_forever_is_left(start: Start, tmp_path: Path) -> None:
    """As seen in the field: only the old connection leads to something that answers 404."""
    async with reporting(start, tmp_path) as (rig, aggregator):
        first = await aggregator.call()
        poisoned: set[Wire] = {first.wire}

        async def stale(call: Call) -> None:
            call.send(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                if call.wire in poisoned
                else b"HTTP/1.1 204 No Content\r\n\r\n"
            )

        aggregator.script = stale
        aggregator.calls.clear()
        async with connected(rig.gateway.port) as client:
            client.request()
            await eventually(lambda: delivered_on_new(aggregator, poisoned), within=6)
        assert await rig.gateway.metric("noctaya_gateway_control_reconnects_total", kind="report") >= 1


async def delivered_on_new(aggregator: Aggregator, poisoned: set[Wire]) -> bool:
    good = [call for call in aggregator.calls if call.wire not in poisoned]
    return any(json.loads(call.data)["demand"] == 1 for call in good)


@pytest.mark.parametrize(
    "status", [b"404 Not Found", b"401 Unauthorized", b"500 Oops", b"200 OK", b"302 Found"]
)
async def test_g12_every_answer_but_204_is_a_failure(start: Start, tmp_path: Path, status: bytes) -> None:
    async with reporting(start, tmp_path) as (rig, aggregator):
        await aggregator.call()

        async def other(call: Call) -> None:
            call.reply(b"", status=status, headers=[(b"Location", b"/elsewhere")])

        aggregator.script = other

        async def errors() -> bool:
            return await rig.gateway.metric("noctaya_gateway_demand_reports_total", result="error") >= 2

        await eventually(errors)
        assert all(call.head.target == b"/v1/demand" for call in aggregator.calls)


async def test_g12_a_hanging_aggregator_is_left_after_a_second(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path) as (rig, aggregator):
        first = await aggregator.call()
        hung: set[Wire] = {first.wire}

        async def hang(call: Call) -> None:
            if call.wire in hung:
                await call.wire.ended(within=60)
            else:
                await accept(call)

        aggregator.script = hang
        aggregator.calls.clear()
        async with connected(rig.gateway.port) as client:
            client.request()
            await eventually(lambda: delivered_on_new(aggregator, hung), within=8)
        await first.wire.ended(within=5)


async def test_g12_an_aggregator_restarted_on_its_port_is_found_again(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path) as (rig, aggregator):
        await aggregator.call()
        await aggregator.stop()
        async with connected(rig.gateway.port) as client:
            client.request()
            await asyncio.sleep(1)
            aggregator.calls.clear()
            await aggregator.start()
            await eventually(lambda: last_demand(aggregator, 1), within=8)


async def test_g12_undelivered_demand_shows_in_readiness_metric_and_log(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path) as (rig, aggregator):
        await aggregator.call()

        async def delivered() -> bool:
            return (await rig.gateway.get_json("/readyz"))["demand_delivered"] is True

        await eventually(delivered)
        await aggregator.stop()
        rig.gateway.lines.clear()
        async with connected(rig.gateway.port) as client:
            client.request()

            async def shown() -> bool:
                detail = await rig.gateway.get_json("/readyz")
                waiting = await rig.gateway.metric("noctaya_gateway_undelivered_demand_seconds")
                logged = any(
                    record["level"].lower() in {"warning", "error"} for record in rig.gateway.records
                )
                return detail["demand_delivered"] is False and waiting > 0 and logged

            await eventually(shown, within=8)
            await aggregator.start()
            await eventually(delivered, within=8)


async def test_g12_log_of_a_lost_aggregator_is_not_a_flood(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path) as (rig, aggregator):
        await aggregator.call()
        await aggregator.stop()
        rig.gateway.lines.clear()
        await asyncio.sleep(5)
        assert 1 <= len(rig.gateway.lines) <= 12


async def test_g12_rotated_token_is_used_for_the_next_report(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path) as (_, aggregator):
        await aggregator.call()
        (tmp_path / "token").write_text("u" * 43)

        async def rotated() -> bool:
            return aggregator.calls[-1].head.one("authorization") == b"Bearer " + b"u" * 43

        await eventually(rotated, within=6)


async def test_g8_a_report_of_zero_is_sent_on_the_way_out(start: Start, tmp_path: Path) -> None:
    async with reporting(start, tmp_path, NOCTAYA_ACTIVATION_TIMEOUT="60s") as (rig, aggregator):
        client = connected(rig.gateway.port)
        (await client.__aenter__()).request()
        await eventually(lambda: last_demand(aggregator, 1))
        await client.__aexit__(None, None, None)
        rig.gateway.terminate()
        assert await rig.gateway.exit_code() == 0
        assert aggregator.reports[-1]["demand"] == 0


@pytest.mark.parametrize("token", [None, "", "short", "x" * 31])
async def test_g12_a_bad_token_file_stops_the_start(start: Start, tmp_path: Path, token: str | None) -> None:
    path = tmp_path / "token"
    if token is not None:
        path.write_text(token)
    with pytest.raises(GatewayExitError) as exited:
        await start(
            healthy=False,
            NOCTAYA_DEMAND_AGGREGATOR_URL="http://127.0.0.1:9",
            NOCTAYA_DEMAND_AUTH_TOKEN_FILE=str(path),
        )
    assert exited.value.code == 1
    assert "NOCTAYA_DEMAND_AUTH_TOKEN_FILE" in str(exited.value)


@pytest.mark.parametrize("fault", ["404", "hang"])
async def test_g12_the_prober_leaves_a_connection_that_misleads_it(start: Start, fault: str) -> None:
    rig = await start(healthy=False, NOCTAYA_PROBE_TIMEOUT="300ms")
    misled: set[Wire] = set()

    async def old_connection_lies(call: Call) -> None:
        if not misled:
            misled.add(call.wire)
        if call.wire not in misled:
            call.reply(b"")
        elif fault == "404":
            call.reply(b"", status=b"404 Not Found")
        else:
            await call.wire.ended(within=60)

    rig.backend.health = old_connection_lies
    await eventually(rig.gateway.backend_ready, within=5)
    assert await rig.gateway.metric("noctaya_gateway_control_reconnects_total", kind="probe") >= 1
