"""T1: one id from the request to the first byte, the same for everyone who waited for the same model."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from .conftest import COLD, Lend
from .harness.client import connected
from .harness.process import eventually
from .harness.rig import Rig

TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def told(rig: Rig) -> list[dict[str, Any]]:
    reply = await rig.gateway.ask(b"GET", b"/noctaya/activations", body=None)
    assert reply.status == 200
    found: list[dict[str, Any]] = json.loads(reply.data)["activations"]
    return found


async def test_t1_everyone_who_waited_is_told_the_id_that_the_gateway_tells(lend: Lend) -> None:
    rig = await lend(healthy=False, **COLD)
    before = len(await told(rig))
    async with connected(rig.gateway.port) as first, connected(rig.gateway.port) as second:
        first.request(headers=[(b"traceparent", TRACE)])
        second.request()

        async def held() -> bool:
            return await rig.gateway.admitted() == 2

        await eventually(held)
        rig.backend.set_healthy(True)
        replies = await asyncio.gather(first.reply(), second.reply())
    ids = {(reply.head.one("x-noctaya-activation-id") or b"").decode() for reply in replies}
    activation, *others = await told(rig)
    assert len(others) == before
    assert ids == {activation["id"]}
    assert re.fullmatch("[0-9a-f]{32}", activation["id"])
    moments = [activation[name] for name in ("requested", "ready", "firstByte")]
    assert moments == sorted(moments)
    assert activation["outcome"] == "ready"


async def test_t1_a_response_that_did_not_wait_names_no_activation(warm: Rig) -> None:
    reply = await warm.gateway.ask()
    assert reply.head.one("x-noctaya-activation-id") is None


async def test_t1_a_wait_in_vain_is_named_too(lend: Lend) -> None:
    rig = await lend(healthy=False, **{**COLD, "NOCTAYA_ACTIVATION_TIMEOUT": "1s"})
    reply = await rig.gateway.ask()
    assert reply.status == 503
    activation, *_ = await told(rig)
    assert (reply.head.one("x-noctaya-activation-id") or b"").decode() == activation["id"]
    assert not {"ready", "firstByte"} & set(activation)
