"""The whole scaler in one loop: reports go in over HTTP, KEDA reads over gRPC, time is moved by hand."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

KNOWN: dict[str, Any] = {"expected_gateway_members": 1}
known_after_one = pytest.mark.parametrize("overrides", [KNOWN])


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  the scaler's own state has no event
            await asyncio.sleep(0.01)


async def code(call: Any) -> grpc.StatusCode | None:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None


@known_after_one
async def test_a1_kedas_metric_is_the_sum_and_zero_once_all_have_expired(scaler: Any) -> None:
    await scaler.report("a", 1, 3)
    await scaler.report("b", 1, 4)
    async with scaler.keda() as keda:
        assert await keda.metric() == 7
        assert await keda.is_active()
        scaler.clock.now += 10.0
        assert await keda.metric() == 0
        assert not await keda.is_active()
    assert (await scaler.metrics())["noctaya_scaler_expired_members_total"] == 2


@known_after_one
async def test_a2_a_replaced_gateway_counts_until_it_expires(scaler: Any) -> None:
    await scaler.report("uid/old", 40, 4)
    scaler.clock.now += 5
    await scaler.report("uid/new", 1, 4)
    async with scaler.keda() as keda:
        assert await keda.metric() == 8
        scaler.clock.now += 5
        assert await keda.metric() == 4


@known_after_one
async def test_a3_the_sweep_tells_keda_that_a_silent_member_is_gone(scaler: Any) -> None:
    sweeping = asyncio.create_task(scaler.app.aggregate.sweep())
    await scaler.report("a", 1, 3)
    async with scaler.keda() as keda, aclosing(keda.stream_is_active()) as stream:
        assert await anext(stream) is True
        scaler.clock.now += 10.0  # nobody reports or asks from here on
        async with asyncio.timeout(30):
            while await anext(stream):
                pass
    sweeping.cancel()


@known_after_one
async def test_a7_a_withdrawal_reaches_keda_at_once(scaler: Any) -> None:
    await scaler.report("a", 1, 3)
    async with scaler.keda() as keda, aclosing(keda.stream_is_active()) as stream:
        assert await anext(stream) is True
        await scaler.report("a", 2, 0)
        async with asyncio.timeout(30):
            while await anext(stream):
                pass
        assert await keda.metric() == 0
    assert (await scaler.metrics())["noctaya_scaler_gateway_members"] == 1


@known_after_one
async def test_a9_streams_are_counted_and_get_the_state_when_they_open(scaler: Any) -> None:
    await scaler.report("a", 1, 1)
    async with scaler.keda() as keda:
        first, second = keda.stream_is_active(), keda.stream_is_active()
        assert await anext(first) is True
        assert await anext(second) is True
        assert (await scaler.metrics())["noctaya_gateway_scaler_streams"] == 2
        await first.aclose()
        await second.aclose()
        await eventually(lambda: scaler.app.streams == 0)
        assert (await scaler.metrics())["noctaya_gateway_scaler_streams"] == 0


async def test_s1_after_a_start_demand_is_unavailable_until_one_ttl_has_passed(scaler: Any) -> None:
    async with scaler.keda() as keda:
        await scaler.report("a", 1, 3)
        assert await code(keda.is_active()) is grpc.StatusCode.UNAVAILABLE
        assert await code(keda.metric()) is grpc.StatusCode.UNAVAILABLE
        assert (await scaler.metrics())["noctaya_scaler_demand_unknown"] == 1
        assert [target.name for target in await keda.metric_spec()] == ["pending"]
        scaler.clock.now += 9.999
        assert await code(keda.metric()) is grpc.StatusCode.UNAVAILABLE
        await scaler.report("a", 2, 3)
        scaler.clock.now += 0.001
        assert await keda.metric() == 3
        assert (await scaler.metrics())["noctaya_scaler_demand_unknown"] == 0


@pytest.mark.parametrize("overrides", [{"expected_gateway_members": 2}])
async def test_s1_a_report_from_every_expected_member_ends_the_unknown_state(scaler: Any) -> None:
    async with scaler.keda() as keda:
        stream = keda.stream_is_active()
        first = asyncio.create_task(anext(stream))
        await scaler.report("a", 1, 0)
        assert await code(keda.metric()) is grpc.StatusCode.UNAVAILABLE
        assert not first.done()
        await scaler.report("b", 1, 2)
        assert await asyncio.wait_for(first, 30) is True
        assert await keda.metric() == 2
        await stream.aclose()


async def test_s1_a_restarted_scaler_never_tells_keda_that_a_busy_service_is_idle(
    scaler: Any, settings: Any, clock: Any
) -> None:
    """A KEDA that keeps its stream and its polls through a restart hears `true` or nothing."""
    successor = type(scaler)(settings, clock)
    await successor.start()
    async with successor.keda() as keda:
        heard: list[bool] = []

        async def follow() -> None:
            async with aclosing(keda.stream_is_active()) as stream:
                heard.append(await anext(stream))

        following = asyncio.create_task(follow())
        assert await code(keda.is_active()) is grpc.StatusCode.UNAVAILABLE
        await successor.report("a", 17, 5)
        clock.now += 9
        await successor.report("a", 18, 5)
        clock.now += 1
        assert await keda.is_active() is True
        await eventually(lambda: bool(heard))
        assert heard[0] is True
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await successor.stop()


async def test_a6_readiness_needs_the_token_and_s1_liveness_never_does(scaler: Any, token_file: Path) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await scaler.http.get(path)).status_code == 200
        assert (await scaler.http.head(path)).status_code == 200
    token = token_file.read_text()  # noqa: ASYNC240
    for damage in ("short", "", None):
        if damage is None:
            token_file.unlink()  # noqa: ASYNC240
        else:
            token_file.write_text(damage)  # noqa: ASYNC240
        assert (await scaler.http.get("/readyz")).status_code == 503
        assert (await scaler.http.get("/healthz")).status_code == 200
    token_file.write_text(token)  # noqa: ASYNC240
    assert (await scaler.http.get("/readyz")).status_code == 200


async def test_other_paths_are_404_as_json(scaler: Any) -> None:
    for path in ("/", "/v1", "/v1/demand/", "/docs"):
        response = await scaler.http.get(path)
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "not_found"


async def test_metrics_have_the_contracts_names_and_labelled_counters_come_with_use(scaler: Any) -> None:
    assert set(await scaler.metrics()) == {
        "noctaya_scaler_demand",
        "noctaya_scaler_gateway_members",
        "noctaya_scaler_demand_unknown",
        "noctaya_gateway_scaler_streams",
        "noctaya_scaler_expired_members_total",
        "noctaya_scaler_clamped_reports_total",
    }
    await scaler.report("a", 1, 1)
    await scaler.post(b"", token="wrong")
    metrics = await scaler.metrics()
    assert metrics['noctaya_scaler_demand_reports_total{result="accepted"}'] == 1
    assert metrics['noctaya_scaler_rejected_reports_total{reason="unauthorized"}'] == 1


async def test_s2_two_token_generations_report_side_by_side(scaler: Any, token_file: Path) -> None:
    good = b'{"memberID":"%s","sequence":1,"demand":1}'
    assert (await scaler.post(good % b"a")).status_code == 204
    token_file.write_text("n" * 43)  # noqa: ASYNC240
    assert (await scaler.post(good % b"b", token="n" * 43)).status_code == 204
    assert (await scaler.post(good % b"c")).status_code == 204  # a gateway that still has the old file
    assert (await scaler.post(good % b"d", token="x" * 43)).status_code == 401


@known_after_one
async def test_g8_the_stop_ends_streams_with_status_ok_and_is_quick(scaler: Any) -> None:
    await scaler.report("a", 1, 1)
    async with scaler.keda() as keda:
        stream = keda.stream_is_active()
        assert await anext(stream) is True
        stopping = asyncio.create_task(scaler.app.stop())
        async with asyncio.timeout(30):
            async for active in stream:  # ends without an error status
                assert active
        await asyncio.wait_for(stopping, 30)
    with pytest.raises(httpx.ConnectError):
        await scaler.http.get("/readyz")


async def test_g8_readiness_fails_while_the_rest_still_stops(scaler: Any, monkeypatch: Any) -> None:
    stopped = asyncio.Event()

    async def slow_stop(grace: float) -> None:
        await stopped.wait()

    with monkeypatch.context() as patched:
        patched.setattr(scaler.app.grpc, "stop", slow_stop)
        stopping = asyncio.create_task(scaler.app.stop())
        await asyncio.sleep(0)
        assert (await scaler.http.get("/readyz")).status_code == 503
        assert (await scaler.http.get("/healthz")).status_code == 200
        assert await scaler.report("a", 1, 1) == 204  # still counted while it is on its way out
        stopped.set()
        await asyncio.wait_for(stopping, 30)
    await scaler.app.grpc.stop(1)


async def test_a_taken_port_stops_the_start_and_leaves_nothing_running(
    scaler: Any, settings: Any, clock: Any
) -> None:
    for name, port in (
        ("aggregator_listen_addr", scaler.app.http_port),
        ("scaler_listen_addr", scaler.app.grpc_port),
    ):
        second = type(scaler)(settings.model_copy(update={name: f"127.0.0.1:{port}"}), clock)
        with pytest.raises(OSError, match=r"in use|listen"):
            await second.app.start()
