"""Writing a status: no write without news, conflicts retried, nobody's change lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator import kinds
from noctaya_operator.kinds import LLM_SERVICES
from noctaya_operator.kube.errors import Conflict, Invalid
from noctaya_operator.kube.objects import Key, Object
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.metrics import OperatorMetrics
from noctaya_operator.publish import StatusWriter, same_status
from prometheus_client import CollectorRegistry
from samples import raw_service

pytestmark = pytest.mark.looptime

KEY = Key("team", "chat")


@pytest.fixture
def server() -> FakeApiServer:
    server = FakeApiServer(kinds.ALL)
    server.put(raw_service())
    return server


@pytest.fixture
async def writer(server: FakeApiServer) -> AsyncIterator[StatusWriter]:
    client = server.direct_client()
    reflector = Reflector(client, LLM_SERVICES)
    yield StatusWriter(client, reflector, LLM_SERVICES, metrics=OperatorMetrics(CollectorRegistry()))


def stored(server: FakeApiServer) -> Object:
    return server.find(LLM_SERVICES, "team", "chat") or {}


def phase(name: str) -> Object:
    return {"phase": name}


async def test_the_same_status_is_not_written_again(server: FakeApiServer, writer: StatusWriter) -> None:
    first, written = await writer.publish(stored(server), lambda _: phase("Ready"))
    assert written
    again, written = await writer.publish(first, lambda _: phase("Ready"))
    assert (again, written) == (first, False)
    assert writer.newest(KEY) == first


async def test_l11_a_conflict_is_retried_on_the_newest_object(
    server: FakeApiServer, writer: StatusWriter
) -> None:
    stale = stored(server)
    user = server.direct_client()
    await user.patch_merge(
        LLM_SERVICES, "team", "chat", {"metadata": {"labels": {"a": "1"}}, "spec": {"x": 1}}
    )
    generations = []

    def compute(latest: Object) -> Object:
        generations.append(latest["metadata"]["generation"])
        return phase("Ready")

    _, written = await writer.publish(stale, compute)
    assert written
    assert generations == [1, 2]
    now = stored(server)
    assert now["metadata"]["labels"] == {"a": "1"}
    assert now["spec"]["x"] == 1
    assert now["status"] == phase("Ready")


async def test_l11_too_many_conflicts_are_an_error(server: FakeApiServer, writer: StatusWriter) -> None:
    server.faults.fail(status=409, reason="Conflict", times=9, verb="update")
    with pytest.raises(Conflict):
        await writer.publish(stored(server), lambda _: phase("Ready"))
    assert len([each for each in server.requests if each.verb == "update"]) == 5


async def test_l11_another_error_is_not_retried(server: FakeApiServer, writer: StatusWriter) -> None:
    server.faults.fail(status=422, reason="Invalid", times=9, verb="update")
    with pytest.raises(Invalid):
        await writer.publish(stored(server), lambda _: phase("Ready"))
    assert len(server.requests) == 1


async def test_an_object_that_is_gone_or_another_now_is_left_alone(
    server: FakeApiServer, writer: StatusWriter
) -> None:
    old = stored(server)
    server.remove(LLM_SERVICES, "team", "chat")
    assert await writer.publish(old, lambda _: phase("Ready")) == (old, False)
    server.put({**raw_service(), "metadata": {"name": "chat", "namespace": "team", "uid": "another"}})
    assert await writer.publish(old, lambda _: phase("Ready")) == (old, False)
    assert "status" not in (stored(server))


def test_the_order_of_conditions_says_nothing() -> None:
    one, other = {"type": "A", "status": "True"}, {"type": "B", "status": "True"}
    assert same_status({"conditions": [one, other]}, {"conditions": [other, one]})
    assert not same_status({"conditions": [one]}, {"conditions": [one, other]})
    assert same_status(None, {})
    assert not same_status(None, {"phase": "Ready"})
