"""The access log: a line for a request, with what happened and without what is secret."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from .conftest import COLD, ONE_ENGINE, Start
from .harness.backend import Call, hold
from .harness.client import STREAM_BODY, connected
from .harness.process import eventually
from .harness.rig import Rig

ALWAYS = {
    "ts",
    "level",
    "logger",
    "msg",
    "service",
    "request_id",
    "method",
    "path",
    "status",
    "outcome",
    "client",
    "bytes_in",
    "bytes_out",
    "cold",
    "total_seconds",
}
AT_A_BACKEND = {"backend", "attempts", "upstream_seconds"}
TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

Logged = Callable[..., Awaitable[Rig]]


class Lines:
    """What gateways of this test wrote on standard output."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    async def of(self, count: int) -> list[dict[str, Any]]:
        async def there() -> bool:
            return len(self.path.read_text().splitlines()) >= count

        await eventually(there)
        lines = self.all()
        assert len(lines) == count, lines
        return lines


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    return Lines(tmp_path / "access.log")


@pytest_asyncio.fixture(loop_scope="session")
async def logged(start: Start, lines: Lines) -> AsyncIterator[Logged]:
    with lines.path.open("wb") as out:

        async def one(*, kind: str = "all", **options: Any) -> Rig:
            return await start(stdout=out, NOCTAYA_ACCESS_LOG=kind, **options)

        yield one


async def test_a_warm_request_gets_a_line_with_its_parts(logged: Logged, lines: Lines) -> None:
    rig = await logged()

    async def answer(call: Call) -> None:
        call.reply(b'{"a":1}')

    rig.backend.script = answer
    await rig.gateway.ask(
        target=b"/v1/chat/completions?api-key=sk-secret",
        body=b'{"prompt":"secret words"}',
        headers=[(b"x-request-id", b'mine"1'), (b"traceparent", TRACE), (b"cookie", b"secret=1")],
    )
    (line,) = await lines.of(1)
    assert set(line) == ALWAYS | AT_A_BACKEND | {"ttfb_seconds", "trace_id"}
    assert (line["method"], line["path"], line["status"]) == ("POST", "/v1/chat/completions", 200)
    assert (line["outcome"], line["cold"], line["attempts"]) == ("answered", False, 1)
    assert (line["bytes_in"], line["bytes_out"]) == (25, 7)
    assert (line["client"], line["request_id"]) == ("127.0.0.1", 'mine"1')
    assert line["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert line["backend"] == rig.backend.url.removeprefix("http://")
    assert 0 < line["ttfb_seconds"] <= line["total_seconds"] < 30
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["ts"])
    assert "secret" not in lines.path.read_text()


async def test_a_cold_stream_says_how_long_it_waited_and_for_which_activation(
    logged: Logged, lines: Lines
) -> None:
    rig = await logged(kind="cold", healthy=False, **COLD)
    async with connected(rig.gateway.port) as client:
        client.request(body=STREAM_BODY)
        head = await client.head()
        rig.backend.set_healthy(True)
        assert (await client.stream_to_end()).complete
    assert (await rig.gateway.ask()).status == 200
    (line,) = await lines.of(1)
    assert set(line) == ALWAYS | AT_A_BACKEND | {"ttfb_seconds", "wait_seconds", "activation_id"}
    assert (line["status"], line["outcome"], line["cold"]) == (200, "answered", True)
    assert line["activation_id"] == (head.one("x-noctaya-activation-id") or b"").decode()
    # The wait is read from the event loop's clock, which stands still for a turn of the loop.
    assert 0.2 < line["wait_seconds"] <= line["ttfb_seconds"] + 0.1
    assert line["ttfb_seconds"] <= line["total_seconds"]


async def test_refusals_failures_and_clients_that_leave_are_told_apart(
    logged: Logged, lines: Lines, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("sk-secret name=batch\n")
    rig = await logged(kind="errors", NOCTAYA_CLIENT_API_KEY_FILE=str(keys))
    key = (b"authorization", b"Bearer sk-secret")

    async def cut(call: Call) -> None:
        call.send_event_stream_head()
        call.send_chunk(b"data: {}\n\n")
        await call.wire.flush()
        call.wire.close()

    assert (await rig.gateway.ask(headers=[key])).status == 200
    assert (await rig.gateway.ask(headers=[(b"x-api-key", b"sk-wrong-one")])).status == 401
    rig.backend.script = cut
    await rig.gateway.ask(body=STREAM_BODY, headers=[key])
    rig.backend.script = hold
    async with connected(rig.gateway.port) as client:
        client.request(headers=[key])
        await rig.backend.call(3)
    refused, failed, left = await lines.of(3)
    assert set(refused) == ALWAYS | {"code"}
    assert (refused["status"], refused["outcome"], refused["code"]) == (401, "refused", "invalid_api_key")
    assert (failed["status"], failed["sent_status"], failed["outcome"]) == (502, 200, "failed")
    assert (failed["code"], failed["key"]) == ("backend_interrupted", "batch")
    assert (left["outcome"], left["code"], left["status"]) == ("client_left", "upstream", 0)
    assert "sk-" not in lines.path.read_text()


@ONE_ENGINE
async def test_none_writes_nothing_and_operational_paths_are_no_requests(
    logged: Logged, lines: Lines
) -> None:
    rig = await logged(kind="none")
    await rig.gateway.ask()
    rig.gateway.terminate()
    assert await rig.gateway.exit_code() == 0
    other = await logged()
    for path in (b"/healthz", b"/readyz", b"/metrics"):
        await other.gateway.ask(b"GET", path, body=None)
    other.gateway.terminate()
    assert await other.gateway.exit_code() == 0
    assert lines.all() == []


@ONE_ENGINE
async def test_what_was_not_written_yet_is_written_at_the_end(logged: Logged, lines: Lines) -> None:
    rig = await logged()
    await asyncio.gather(*(rig.gateway.ask() for _ in range(20)))
    rig.gateway.terminate()
    assert await rig.gateway.exit_code() == 0
    assert len(lines.all()) == 20


@ONE_ENGINE
async def test_a_full_disk_costs_lines_and_nothing_else(start: Start) -> None:
    with Path("/dev/full").open("wb") as full:  # noqa: ASYNC230  a device
        rig = await start(stdout=full, NOCTAYA_ACCESS_LOG="all")
        for _ in range(3):
            assert (await rig.gateway.ask()).status == 200

        async def lost() -> bool:
            return await rig.gateway.metric("noctaya_gateway_access_log_lost_total") == 3

        await eventually(lost)
    assert await rig.gateway.metric("noctaya_gateway_access_log_lines_total") == 0
    assert [each["msg"] for each in rig.gateway.records if each["level"] == "warning"] == [
        "access log can't be written"
    ]
    rig.gateway.terminate()
    assert await rig.gateway.exit_code() == 0
