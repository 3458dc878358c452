"""T1: a gateway whose clock is beyond the calendar's ends is not believed, and asked again."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord
from noctaya_operator.activation_poller import ActivationPoller
from noctaya_operator.kube.objects import Key

pytestmark = pytest.mark.looptime

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
ID = "0af7651916cd43dd8448eb211c80319c"
SERVICE = Key("team", "chat")


def said(now: str, requested: str) -> bytes:
    return json.dumps({"now": now, "activations": [{"id": ID, "requested": requested}]}).encode()


@pytest.mark.parametrize(
    "hostile",
    [
        said("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
        said("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"),
    ],
)
async def test_it_is_asked_again_after_times_that_can_not_be(hostile: bytes) -> None:
    answers = [hostile, hostile]

    async def fetch(url: str) -> bytes:
        good = said("2026-11-30T08:00:00Z", "2026-11-30T07:59:59Z")
        return answers.pop() if answers else good

    poller = ActivationPoller(fetch, now=lambda: NOW)
    heard = asyncio.Event()
    poller.subscribe(lambda service: heard.set())
    record = ActivationRecord(outcome=ActivationOutcome.IN_PROGRESS, requested="2026-11-30T08:00:00Z")
    try:
        poller.follow(SERVICE, record, ["10.0.0.9"])
        async with asyncio.timeout(600):
            await heard.wait()
        assert [each.id for each in poller.told(SERVICE)] == [ID]
    finally:
        await poller.close()
    assert not answers
