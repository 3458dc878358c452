"""The watch and the answer to a write arrive in any order; the later state counts, not the later message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator import kinds
from noctaya_operator.kinds import LLM_SERVICES
from noctaya_operator.kube.objects import Key, Object
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.metrics import OperatorMetrics
from noctaya_operator.publish import StatusWriter
from prometheus_client import CollectorRegistry
from samples import raw_service

pytestmark = pytest.mark.looptime

KEY = Key("team", "chat")


class OvertakenAnswers:
    """A client whose answers to status writes arrive after the watch has shown a later change of a user's."""

    def __init__(self, server: FakeApiServer, reflector: Reflector) -> None:
        self._client = server.direct_client()
        self._shown = asyncio.Event()
        reflector.subscribe(self._seen)

    async def update_status(self, obj: Object) -> Object:
        answer: Object = await self._client.update_status(obj)
        change = {"spec": {"scaling": {"target": 7}}}
        await self._client.patch_merge(LLM_SERVICES, KEY.namespace, KEY.name, change)
        async with asyncio.timeout(10):
            await self._shown.wait()
        return answer

    def _seen(self, old: Object | None, new: Object | None) -> None:
        if generation(new) == 2:
            self._shown.set()


def generation(obj: Object | None) -> Any:
    return (obj or {}).get("metadata", {}).get("generation")


async def test_a_change_the_watch_showed_before_our_answer_came_is_not_missed() -> None:
    server = FakeApiServer(kinds.ALL)
    server.put(raw_service())
    reflector = Reflector(server.direct_client(), LLM_SERVICES)
    client: Any = OvertakenAnswers(server, reflector)
    writer = StatusWriter(client, reflector, LLM_SERVICES, metrics=OperatorMetrics(CollectorRegistry()))
    following = asyncio.create_task(reflector.run())
    try:
        await reflector.synced.wait()
        stored = reflector.cache.get(KEY)
        assert stored is not None
        _, written = await writer.publish(stored, lambda _: {"phase": "Ready"})
        assert written
        assert generation(writer.newest(KEY)) == 2
    finally:
        following.cancel()
        await asyncio.wait([following])
