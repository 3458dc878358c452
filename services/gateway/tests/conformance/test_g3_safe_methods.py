"""G3: safe methods never wake a model and never take a slot."""

from __future__ import annotations

import pytest

from .conftest import COLD, Lend, Start
from .harness.backend import JSON_REPLY, answer, hold
from .harness.client import STREAM_BODY, connected
from .harness.process import eventually
from .harness.rig import Rig
from .test_g2_errors import KEY, assert_retry_after, key_file

NAMED = {
    **COLD,
    "NOCTAYA_SERVICE_NAME": "tiny",
    "NOCTAYA_MODEL_IDS": "org/Tiny-135M,org/deep/path",
}


async def assert_not_woken(rig: Rig) -> None:
    assert await rig.gateway.demand() == 0
    assert await rig.gateway.admitted() == 0
    assert rig.backend.calls == []


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS"])
@pytest.mark.parametrize(
    "target", [b"/", b"/favicon.ico", b"/v1/chat/completions", b"/anything?x=1", b"/health"]
)
async def test_g3_safe_method_on_a_cold_service_is_503_and_wakes_nothing(
    cold: Rig, method: bytes, target: bytes
) -> None:
    async with connected(cold.gateway.port) as client:
        reply = await client.exchange(method, target, body=None)
        assert reply.status == 503
        assert_retry_after(reply)
        if method == b"HEAD":
            assert await client.wire.silent(0.1)
        else:
            assert reply.error["code"] == "cold_start"
    await assert_not_woken(cold)


async def test_g3_models_are_listed_while_cold(lend: Lend) -> None:
    rig = await lend(healthy=False, **NAMED)
    reply = await rig.gateway.ask(b"GET", b"/v1/models", body=None)
    assert reply.status == 200
    assert (reply.head.one("content-type") or b"").startswith(b"application/json")
    listed = reply.json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["tiny", "org/Tiny-135M", "org/deep/path"]
    for model in listed["data"]:
        assert model["object"] == "model"
        assert isinstance(model["created"], int)
        assert isinstance(model["owned_by"], str)
        assert "cold" in str(model).lower() or "zero" in str(model).lower(), model
    await assert_not_woken(rig)


async def test_g3_models_list_keeps_its_query_and_head_has_no_body(lend: Lend) -> None:
    rig = await lend(healthy=False, **NAMED)
    assert (await rig.gateway.ask(b"GET", b"/v1/models?limit=1", body=None)).status == 200
    async with connected(rig.gateway.port) as client:
        reply = await client.exchange(b"HEAD", b"/v1/models", body=None)
        assert reply.status == 200
        assert await client.wire.silent(0.1)
    await assert_not_woken(rig)


@pytest.mark.parametrize(
    ("target", "model"),
    [
        (b"/v1/models/tiny", "tiny"),
        (b"/v1/models/org/Tiny-135M", "org/Tiny-135M"),
        (b"/v1/models/org%2FTiny-135M", "org/Tiny-135M"),
        (b"/v1/models/org%2fTiny-135M", "org/Tiny-135M"),
        (b"/v1/models/org/deep%2Fpath", "org/deep/path"),
    ],
)
async def test_g3_one_model_is_found_with_its_slashes_encoded_or_not(
    lend: Lend, target: bytes, model: str
) -> None:
    rig = await lend(healthy=False, **NAMED)
    reply = await rig.gateway.ask(b"GET", target, body=None)
    assert reply.status == 200
    assert reply.json()["id"] == model
    assert reply.json()["object"] == "model"
    await assert_not_woken(rig)


@pytest.mark.parametrize(
    "target", [b"/v1/models/other", b"/v1/models/%ff", b"/v1/models/tiny/", b"/v1/models/org"]
)
async def test_g3_unknown_model_is_404_json_and_wakes_nothing(lend: Lend, target: bytes) -> None:
    rig = await lend(healthy=False, **NAMED)
    reply = await rig.gateway.ask(b"GET", target, body=None)
    assert reply.status == 404
    assert reply.error["code"] == "model_not_found"
    await assert_not_woken(rig)


@pytest.mark.parametrize(
    ("host", "name"),
    [("my-model-backend", "my-model"), ("my-model-backend.ns.svc", "my-model"), ("other.ns", "other")],
)
async def test_g3_service_name_defaults_to_the_first_label_of_the_backends_host(
    start: Start, host: str, name: str
) -> None:
    rig = await start(
        healthy=False, NOCTAYA_BACKEND_URL=f"http://{host}:8000", NOCTAYA_BACKEND_ENDPOINTS="127.0.0.1:9"
    )
    listed = (await rig.gateway.ask(b"GET", b"/v1/models", body=None)).json()
    assert [model["id"] for model in listed["data"]] == [name]


@pytest.mark.parametrize("target", [b"/", b"/v1/models", b"/v1/models/x", b"/any?q=1"])
async def test_g3_safe_methods_reach_a_warm_backend(warm: Rig, target: bytes) -> None:
    reply = await warm.gateway.ask(b"GET", target, body=None)
    assert (reply.status, reply.data) == (200, JSON_REPLY)
    assert (await warm.backend.call()).head.start_line == b"GET " + target + b" HTTP/1.1"


async def test_g3_safe_method_passes_while_every_slot_is_taken(lend: Lend) -> None:
    rig = await lend(NOCTAYA_MAX_QUEUE="1")
    rig.backend.script = hold
    async with connected(rig.gateway.port) as first:
        first.request()
        await rig.backend.call()
        rig.backend.script = answer
        assert (await rig.gateway.ask(b"GET", b"/v1/models", body=None)).status == 200
        assert (await rig.gateway.ask()).status == 429


async def test_g3_safe_method_in_flight_is_no_demand(warm: Rig) -> None:
    warm.backend.script = hold
    async with connected(warm.gateway.port) as client:
        client.request(b"GET", b"/slow", body=None)
        await warm.backend.call()
        assert await warm.gateway.demand() == 0
        assert await warm.gateway.admitted() == 0


async def test_g3_safe_method_while_others_are_held_is_answered_at_once(cold: Rig) -> None:
    async with connected(cold.gateway.port) as held:
        held.request()

        async def waiting() -> bool:
            return await cold.gateway.demand() == 1

        await eventually(waiting)
        assert (await cold.gateway.ask(b"GET", b"/v1/models", body=None)).status == 200
        assert (await cold.gateway.ask(b"GET", b"/", body=None)).status == 503
        assert await cold.gateway.demand() == 1


async def test_g3_safe_methods_need_the_key_when_there_is_one(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(healthy=False, NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    assert (await rig.gateway.ask(b"GET", b"/v1/models", body=None)).status == 401
    assert (await rig.gateway.ask(b"OPTIONS", b"/v1/models", body=None)).status == 401
    reply = await rig.gateway.ask(b"GET", b"/v1/models", body=None, headers=[(b"x-api-key", KEY)])
    assert reply.status == 200


async def test_g3_get_with_a_body_wakes_nothing_either(cold: Rig) -> None:
    async with connected(cold.gateway.port) as client:
        assert (await client.exchange(b"GET", b"/v1/x", body=STREAM_BODY)).status == 503
        assert (await client.exchange(b"GET", b"/v1/models", body=b"x")).status == 200
    await assert_not_woken(cold)


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"PATCH", b"DELETE"])
async def test_g3_other_methods_do_wake(cold: Rig, method: bytes) -> None:
    async with connected(cold.gateway.port) as client:
        client.request(method, b"/v1/x", body=None if method == b"DELETE" else b"{}")

        async def waiting() -> bool:
            return await cold.gateway.demand() == 1

        await eventually(waiting)
        cold.backend.set_healthy(True)
        assert (await client.reply()).status == 200
    assert (await cold.backend.call()).head.method == method
