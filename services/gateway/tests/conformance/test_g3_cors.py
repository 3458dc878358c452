"""G3: CORS preflight is answered before authentication, when CORS is configured."""

from __future__ import annotations

import pytest

from .conftest import COLD, Lend
from .harness.backend import Call
from .harness.client import STREAM_BODY, connected
from .harness.message import Header
from .test_g2_errors import KEY, key_file

ORIGIN = b"https://chat.example"
PREFLIGHT: list[Header] = [
    (b"Origin", ORIGIN),
    (b"Access-Control-Request-Method", b"POST"),
    (b"Access-Control-Request-Headers", b"authorization,content-type"),
]


@pytest.mark.parametrize("healthy", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("origins", [ORIGIN.decode(), "*"])
async def test_g3_preflight_is_answered_before_authentication_and_wakes_nothing(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory, origins: str, healthy: bool
) -> None:
    rig = await lend(
        healthy=healthy,
        NOCTAYA_CORS_ORIGINS=origins,
        NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory),
        **COLD,
    )
    reply = await rig.gateway.ask(b"OPTIONS", body=None, headers=PREFLIGHT)
    assert reply.status in {200, 204}
    assert reply.head.one("access-control-allow-origin") in {ORIGIN, b"*"}
    assert b"POST" in (reply.head.one("access-control-allow-methods") or b"")
    allowed = (reply.head.one("access-control-allow-headers") or b"").lower()
    assert b"authorization" in allowed or allowed == b"*"
    assert rig.backend.calls == []
    assert await rig.gateway.demand() == 0


async def test_g3_answers_carry_the_allowed_origin_errors_included(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(
        NOCTAYA_CORS_ORIGINS=ORIGIN.decode(), NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory), **COLD
    )
    good = await rig.gateway.ask(headers=[(b"Origin", ORIGIN), (b"Authorization", b"Bearer " + KEY)])
    assert good.status == 200
    assert good.head.one("access-control-allow-origin") == ORIGIN
    bad = await rig.gateway.ask(headers=[(b"Origin", ORIGIN)])
    assert bad.status == 401
    assert bad.head.one("access-control-allow-origin") == ORIGIN


async def test_g3_other_origins_get_no_permission(lend: Lend) -> None:
    rig = await lend(NOCTAYA_CORS_ORIGINS=f"{ORIGIN.decode()},https://second.example", **COLD)
    for origin in (b"https://evil.example", b"https://chat.example.evil.example", b"null"):
        reply = await rig.gateway.ask(
            b"OPTIONS", body=None, headers=[(b"Origin", origin), (b"Access-Control-Request-Method", b"POST")]
        )
        assert reply.head.one("access-control-allow-origin") is None
    second = await rig.gateway.ask(headers=[(b"Origin", b"https://second.example")])
    assert second.head.one("access-control-allow-origin") == b"https://second.example"


async def test_g3_without_cors_a_preflight_is_an_ordinary_request(lend: Lend) -> None:
    rig = await lend()
    await rig.gateway.ask(b"OPTIONS", body=None, headers=PREFLIGHT)
    call = await rig.backend.call()
    assert call.head.method == b"OPTIONS"
    assert call.head.one("origin") == ORIGIN


async def test_g3_a_committed_stream_carries_the_allowed_origin(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_CORS_ORIGINS=ORIGIN.decode(), **COLD)
    async with connected(rig.gateway.port) as client:
        client.request(body=STREAM_BODY, headers=[(b"Origin", ORIGIN)])
        assert (await client.head()).one("access-control-allow-origin") == ORIGIN


async def test_g3_the_backends_own_cors_headers_do_not_make_two(lend: Lend) -> None:
    rig = await lend(NOCTAYA_CORS_ORIGINS=ORIGIN.decode(), **COLD)

    async def own(call: Call) -> None:
        call.reply(headers=[(b"Access-Control-Allow-Origin", b"*"), (b"Vary", b"Accept")])

    rig.backend.script = own
    reply = await rig.gateway.ask(headers=[(b"Origin", ORIGIN)])
    assert reply.head.one("access-control-allow-origin") == ORIGIN
    assert b"Origin" in b",".join(reply.head.all("vary"))
