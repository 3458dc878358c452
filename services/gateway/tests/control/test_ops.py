from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest
from noctaya_gateway import __version__
from noctaya_gateway.control import Control, build_control
from noctaya_gateway.datapath import OPERATIONS_PATHS
from noctaya_gateway.ops import PATHS, operations
from noctaya_gateway.settings import GatewaySettings


@pytest.fixture
async def control() -> AsyncIterator[Control]:
    built = build_control(GatewaySettings(backend_url="http://127.0.0.1:9", scaler_listen_addr="127.0.0.1:0"))
    yield built
    built.gate.close()


@pytest.fixture
async def client(control: Control) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=operations(control.gate, control.delivery))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as made:
        yield made


async def test_healthz_is_200_and_empty_whatever_happens(client: httpx.AsyncClient, control: Control) -> None:
    for draining in (False, True):
        control.gate.draining = draining
        response = await client.get("/healthz")
        assert (response.status_code, response.content) == (200, b"")


async def test_g8_readyz_fails_while_draining_and_not_while_the_backend_is_cold(
    client: httpx.AsyncClient, control: Control
) -> None:
    response = await client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "draining": False,
        "backend_ready": False,
        "ready_endpoints": 0,
        "prewarming": False,
        "asleep": False,
        "activating": False,
        "held": 0,
        "demand": 0,
        "demand_delivered": None,
        "undelivered_seconds": 0.0,
        "undelivered_reason": "",
    }
    control.gate.draining = True
    response = await client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["draining"] is True


async def test_g11_of_contracts_queue_shows_effective_demand(
    client: httpx.AsyncClient, control: Control
) -> None:
    response = await client.get("/noctaya/queue")
    assert response.text == '{"pending":0}\n'
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    control.gate.activation.begin()
    assert (await client.get("/noctaya/queue")).text == '{"pending":1}\n'
    slots = [control.gate.admission.admit() for _ in range(3)]
    assert (await client.get("/noctaya/queue")).text == '{"pending":3}\n'
    for slot in slots:
        slot.release()


async def test_g6_of_contracts_the_gauges_are_there_from_the_start(client: httpx.AsyncClient) -> None:
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    for name in (
        "pending 0.0",
        "demand 0.0",
        "held 0.0",
        "scaler_streams 0.0",
        "undelivered_demand_seconds 0.0",
        "activation_events_total 0.0",
        "activation_wait_seconds_count 0.0",
    ):
        assert f"\nnoctaya_gateway_{name}\n" in response.text


async def test_t1_the_last_activations_are_told_with_the_time_it_is(
    client: httpx.AsyncClient, control: Control
) -> None:
    assert (await client.get("/noctaya/activations")).json()["activations"] == []
    control.gate.begin_activation()
    control.gate.activation.doom("no such image")
    control.gate.timeline.begun()
    told = (await client.get("/noctaya/activations")).json()
    now = datetime.fromisoformat(told["now"])
    assert abs((datetime.now(UTC) - now).total_seconds()) < 60
    pending, failed = told["activations"]
    assert set(pending) == {"id", "requested"}
    assert pending["id"] == control.gate.timeline.activation_id != failed["id"]
    assert (failed["outcome"], set(failed)) == ("failed", {"id", "requested", "ended", "outcome"})
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", failed["ended"])


async def test_t1_a_reader_of_openmetrics_gets_exemplars(client: httpx.AsyncClient, control: Control) -> None:
    control.gate.metrics.waited(3.0, activation_id="a" * 32)
    response = await client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert f'# {{activation_id="{"a" * 32}"}} 3.0' in response.text
    assert response.text.endswith("# EOF\n")


@pytest.mark.parametrize("path", sorted(PATHS))
async def test_head_is_answered_and_any_other_method_is_405(client: httpx.AsyncClient, path: str) -> None:
    if path != "/noctaya/openapi.json":
        head = await client.head(path)
        assert head.status_code == 200
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        response = await client.request(method, path)
        assert response.status_code == 405
        assert "GET" in response.headers["allow"]
        assert response.json()["error"]["code"] == "method_not_allowed"


async def test_the_openapi_document_describes_the_endpoints(client: httpx.AsyncClient) -> None:
    document = (await client.get("/noctaya/openapi.json")).json()
    assert document["info"]["version"] == __version__
    assert set(document["paths"]) == PATHS - {"/noctaya/openapi.json"}
    assert set(document["paths"]["/readyz"]["get"]["responses"]) == {"200", "503"}
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names)), names


def test_the_data_path_sends_just_these_paths_here() -> None:
    assert {path.decode() for path in OPERATIONS_PATHS} == PATHS


async def test_an_unknown_path_is_a_json_404(client: httpx.AsyncClient) -> None:
    response = await client.get("/nowhere")
    assert response.status_code == 404
    assert "error" in response.json()
