"""Rows G1 to G15 of the contract's conformance list (8.3), where no rule's own test covers them.

The rows have numbers of their own: `row_g9` is row G9 of that list, not rule G9. Rows that are covered
elsewhere: 2, 3, 8 in the heartbeat tests, 5 and 13 in the key tests, 12 in the scaler's tests, 15 in the
drain tests.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from .conftest import COLD, ONE_ENGINE, Lend, Start
from .harness.client import PLAIN_BODY, STREAM_BODY, connected, open_client
from .harness.process import GatewayExitError, eventually
from .harness.rig import Rig


async def held(rig: Rig, count: int) -> bool:
    return await rig.gateway.admitted() == count


@ONE_ENGINE
@pytest.mark.parametrize(
    "url",
    [
        "",
        "no-scheme:80",
        "model.ns.svc",
        "ftp://model:80",
        "http://",
        "http://:80",
        "http://m:0",
        "http://m:99999",
    ],
)
async def test_row_g1_bad_backend_url_stops_the_start(start: Start, url: str) -> None:
    with pytest.raises(GatewayExitError) as exited:
        await start(healthy=False, NOCTAYA_BACKEND_URL=url)
    assert exited.value.code == 1
    assert "NOCTAYA_BACKEND_URL" in str(exited.value)
    assert "Traceback" not in str(exited.value)


BAD_SETTINGS = {
    "NOCTAYA_LISTEN_ADDR": "nonsense",
    "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:99999",
    "NOCTAYA_HEARTBEATS": "maybe",
    "NOCTAYA_HEALTH_PATH": "no-slash",
    "NOCTAYA_BACKEND_ENDPOINTS": "host-without-port",
    "NOCTAYA_PROBE_INTERVAL": "1d",
    "NOCTAYA_PROBE_TIMEOUT": "0s",
    "NOCTAYA_PROBE_RISE": "0",
    "NOCTAYA_PROBE_FALL": "-1",
    "NOCTAYA_MAX_BODY_BYTES": "1e9",
    "NOCTAYA_MAX_BUFFERED_BYTES": "-5",
    "NOCTAYA_BODY_TIMEOUT": "soon",
    "NOCTAYA_LAME_DUCK": "-1s",
    "NOCTAYA_DRAIN_TIMEOUT": "x",
    "NOCTAYA_RELEASE_RATE": "-2",
    "NOCTAYA_READY_GRACE": "15",
    "NOCTAYA_HTTP_ENGINE": "turbo",
    "NOCTAYA_LOG_LEVEL": "shout",
}


@ONE_ENGINE
async def test_row_g1_bad_settings_stop_the_start_and_every_one_is_named(start: Start) -> None:
    with pytest.raises(GatewayExitError) as exited:
        await start(healthy=False, **BAD_SETTINGS)
    assert exited.value.code == 1
    assert [name for name in BAD_SETTINGS if name not in str(exited.value)] == []
    assert "Traceback" not in str(exited.value)


@ONE_ENGINE
@pytest.mark.parametrize(
    "settings",
    [
        {"NOCTAYA_SCALER_TLS_CERT_FILE": "/only/one/of/three"},
        {"NOCTAYA_DEMAND_AGGREGATOR_URL": "http://127.0.0.1:9"},
        {"NOCTAYA_DEMAND_AGGREGATOR_URL": "ftp://x", "NOCTAYA_DEMAND_AUTH_TOKEN_FILE": __file__},
    ],
    ids=["tls in part", "no token", "aggregator url"],
)
async def test_row_g1_settings_that_need_others_stop_the_start(
    start: Start, settings: dict[str, str]
) -> None:
    with pytest.raises(GatewayExitError) as exited:
        await start(healthy=False, **settings)
    assert exited.value.code == 1
    assert re.search(r"NOCTAYA_(SCALER_TLS|DEMAND)_", str(exited.value))
    assert "Traceback" not in str(exited.value)


@ONE_ENGINE
async def test_row_g1_a_port_that_is_taken_stops_the_start(start: Start) -> None:
    rig = await start(healthy=False)
    with pytest.raises(GatewayExitError) as exited:
        await start(healthy=False, NOCTAYA_LISTEN_ADDR=f"127.0.0.1:{rig.gateway.port}")
    assert exited.value.code == 1
    assert "Traceback" not in str(exited.value)


@ONE_ENGINE
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOCTAYA_MAX_QUEUE", "zero"),
        ("NOCTAYA_MAX_QUEUE", "0"),
        ("NOCTAYA_ACTIVATION_TIMEOUT", "-1s"),
        ("NOCTAYA_HEARTBEAT_INTERVAL", "often"),
        ("NOCTAYA_COLDSTART_MODE", "whatever"),
    ],
)
async def test_row_g1_settings_of_the_alpha_keep_their_silent_defaults(
    start: Start, name: str, value: str
) -> None:
    """Contract 3.1 says that these fall back; a stricter gateway may stop and name the variable instead."""
    try:
        rig = await start(**{name: value})
    except GatewayExitError as exited:
        assert exited.code == 1
        assert name in str(exited)
    else:
        assert (await rig.gateway.ask()).status == 200


async def test_row_g4_hold_ends_with_503_and_the_backend_never_hears_of_it(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_ACTIVATION_TIMEOUT="500ms")
    reply = await rig.gateway.ask()
    assert reply.status == 503
    assert (reply.head.one("retry-after") or b"").isdigit()
    await rig.set_healthy(True)
    await asyncio.sleep(0.1)
    assert rig.backend.calls == []


async def test_row_g6_metric_names_and_a_wait_histogram_of_waits_only(start: Start) -> None:
    rig = await start()
    for _ in range(5):
        assert (await rig.gateway.ask()).status == 200
    names = {name for name, _ in await rig.gateway.metrics()}
    assert names >= {
        "noctaya_gateway_pending",
        "noctaya_gateway_demand",
        "noctaya_gateway_requests_total",
        "noctaya_gateway_activation_wait_seconds_count",
        "noctaya_gateway_activation_wait_seconds_sum",
        "noctaya_gateway_activation_wait_seconds_bucket",
        "noctaya_gateway_scaler_streams",
        "noctaya_gateway_activation_events_total",
    }
    assert "noctaya_gateway_rejections_total" not in names
    assert not {name for name in names if name.startswith(("go_", "process_", "python_"))}
    assert await rig.gateway.metric("noctaya_gateway_activation_wait_seconds_count") == 0
    await rig.set_healthy(False)
    async with connected(rig.gateway.port) as client:
        client.request()
        await eventually(lambda: held(rig, 1))
        rig.backend.set_healthy(True)
        assert (await client.reply()).status == 200
    metrics = await rig.gateway.metrics()
    buckets = [dict(labels)["le"] for name, labels in metrics if name.endswith("wait_seconds_bucket")]
    assert sorted(map(float, buckets)) == [0.01, 0.1, 1, 5, 15, 30, 60, 120, 300, float("inf")]
    assert await rig.gateway.metric("noctaya_gateway_activation_wait_seconds_count") == 1


@ONE_ENGINE
async def test_row_g6_metrics_are_prometheus_text(lend: Lend) -> None:
    rig = await lend()
    reply = await rig.gateway.ask(b"GET", b"/metrics", body=None)
    assert reply.status == 200
    assert (reply.head.one("content-type") or b"").startswith(b"text/plain")
    assert b"# TYPE noctaya_gateway_pending gauge" in reply.data


@ONE_ENGINE
async def test_row_g7_concurrent_cold_requests_share_probes(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_PROBE_INTERVAL="30s", NOCTAYA_PROBE_FAST_INTERVAL="30s")
    await asyncio.sleep(0.2)
    rig.backend.probes.clear()
    clients = [await open_client(rig.gateway.port) for _ in range(10)]
    for client in clients:
        client.request()
    await eventually(lambda: held(rig, 10))
    await asyncio.sleep(0.2)
    assert len(rig.backend.probes) <= 1
    for client in clients:
        client.leave()


async def test_row_g9_stream_timeout_is_counted_as_200_and_activation_timeout(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="100ms", NOCTAYA_ACTIVATION_TIMEOUT="500ms")
    assert (await rig.gateway.ask(body=STREAM_BODY)).status == 200
    assert await rig.gateway.metric("noctaya_gateway_requests_total", code="200") == 1
    assert await rig.gateway.metric("noctaya_gateway_requests_total", code="503") == 0
    assert await rig.gateway.metric("noctaya_gateway_rejections_total", reason="activation_timeout") == 1


@pytest.mark.parametrize("body", [PLAIN_BODY, STREAM_BODY], ids=["plain", "stream"])
async def test_row_g10_cancelled_cold_request_is_no_activation_timeout(start: Start, body: bytes) -> None:
    rig = await start(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="50ms", NOCTAYA_ACTIVATION_TIMEOUT="800ms")
    client = await open_client(rig.gateway.port)
    client.request(body=body)
    await eventually(lambda: held(rig, 1))
    client.leave()

    async def lease_over() -> bool:
        return await rig.gateway.demand() == 0

    await eventually(lease_over)
    assert await rig.gateway.metric("noctaya_gateway_rejections_total", reason="activation_timeout") == 0
    assert await rig.gateway.metric("noctaya_gateway_requests_total", code="503") == 0


async def test_row_g11_reject_mode_says_503_and_the_queue_shows_1(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_COLDSTART_MODE="reject")
    assert (await rig.gateway.ask(body=STREAM_BODY)).status == 503
    reply = await rig.gateway.ask(b"GET", b"/noctaya/queue", body=None)
    assert reply.status == 200
    assert reply.data == b'{"pending":1}\n'


async def test_row_g14_32_workers_of_200_transitions_converge_to_zero(start: Start) -> None:
    """Every transition is a request of its own, over 32 connections at once."""
    rig = await start(NOCTAYA_MAX_QUEUE="32")

    async def worker() -> None:
        async with connected(rig.gateway.port) as client:
            for _ in range(200):
                assert (await client.exchange(within=60)).status == 200

    await asyncio.gather(*(worker() for _ in range(32)))
    assert await rig.gateway.admitted() == 0
    assert await rig.gateway.demand() == 0
    assert await rig.gateway.metric("noctaya_gateway_requests_total", code="200") == 6400


async def test_row_healthz_is_always_200_and_empty(lend: Lend) -> None:
    rig = await lend(healthy=False, **COLD)
    for method in (b"GET", b"HEAD"):
        reply = await rig.gateway.ask(method, b"/healthz", body=None)
        assert (reply.status, reply.data) == (200, b"")


async def test_row_operational_endpoints_are_never_proxied_nor_counted(lend: Lend) -> None:
    rig = await lend()
    for target in (b"/healthz", b"/readyz", b"/metrics", b"/noctaya/queue", b"/noctaya/activations"):
        assert (await rig.gateway.ask(b"GET", target, body=None)).status == 200
        await rig.gateway.ask(b"POST", target, body=b"{}")
    assert rig.backend.calls == []
    assert await rig.gateway.demand() == 0
