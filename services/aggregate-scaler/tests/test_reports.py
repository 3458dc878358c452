"""`POST /v1/demand` over real sockets, in the contract's order of checks."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = b'{"memberID":"a","sequence":1,"demand":3}'
HEAD = (
    "POST /v1/demand HTTP/1.1\r\nHost: s\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
)
TOKEN = "t" * 43


async def raw(scaler: Any, content: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", scaler.app.http_port)
    writer.write(content)
    return reader, writer


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  the scaler's own state has no event
            await asyncio.sleep(0.01)


async def test_an_accepted_report_is_204_without_a_body(scaler: Any) -> None:
    response = await scaler.post(GOOD)
    assert (response.status_code, response.content) == (204, b"")
    assert (await scaler.metrics())["noctaya_scaler_demand"] == 3


async def test_a1_a_stale_report_is_204_too_and_changes_nothing(scaler: Any) -> None:
    assert await scaler.report("a", 5, 3) == 204
    assert await scaler.report("a", 5, 9) == 204
    assert await scaler.report("a", 4, 9) == 204
    metrics = await scaler.metrics()
    assert metrics["noctaya_scaler_demand"] == 3
    assert metrics['noctaya_scaler_demand_reports_total{result="accepted"}'] == 1
    assert metrics['noctaya_scaler_demand_reports_total{result="stale"}'] == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_are_405_with_allow_even_without_a_token_file(
    scaler: Any, token_file: Path, method: str
) -> None:
    token_file.unlink()  # noqa: ASYNC240
    response = await scaler.http.request(method, "/v1/demand")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "authorization",
    [None, "", TOKEN, f"bearer {TOKEN}", f"Bearer  {TOKEN}", f"Bearer {TOKEN}x", "Bearer", f"Basic {TOKEN}"],
)
async def test_a5_anything_but_the_exact_bearer_token_is_401(scaler: Any, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    response = await scaler.http.post("/v1/demand", content=GOOD, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["error"]["code"] == "unauthorized"
    assert (await scaler.metrics())["noctaya_scaler_gateway_members"] == 0


async def test_only_the_first_authorization_header_counts(scaler: Any) -> None:
    good, bad = ("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer no")
    assert (await scaler.http.post("/v1/demand", content=GOOD, headers=[good, bad])).status_code == 204
    assert (await scaler.http.post("/v1/demand", content=GOOD, headers=[bad, good])).status_code == 401


async def test_a_bad_token_file_is_503_before_401_and_before_the_body(scaler: Any, token_file: Path) -> None:
    token_file.write_text("short")  # noqa: ASYNC240
    response = await scaler.post(b"nonsense", token="wrong")
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "authentication_unavailable"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        GOOD + b"x",
        b'{"memberID":"a","sequence":1,"demand":3,"more":1}',
        b'{"memberID":"","sequence":1,"demand":3}',
        b'{"memberID":"' + b"m" * 513 + b'","sequence":1,"demand":3}',
        b'{"memberID":"a","sequence":0,"demand":3}',
        b'{"memberID":"a","sequence":-1,"demand":3}',
        b'{"memberID":"a","sequence":1.5,"demand":3}',
        b'{"memberID":"a","sequence":1,"demand":-1}',
        b" " * 70_000 + GOOD,
    ],
)
async def test_a4_an_invalid_report_is_400_and_changes_nothing(scaler: Any, body: bytes) -> None:
    response = await scaler.post(body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_report"
    metrics = await scaler.metrics()
    assert metrics["noctaya_scaler_gateway_members"] == 0
    assert not [name for name in metrics if name.startswith("noctaya_scaler_demand_reports_total")]


async def test_keys_match_in_any_case(scaler: Any) -> None:
    assert (await scaler.post(b'{"MemberId":"a","SEQUENCE":1,"demand":3}')).status_code == 204


async def test_a_chunked_report_is_accepted_and_an_endless_one_is_not(scaler: Any) -> None:
    async def chunks(count: int) -> Any:
        yield GOOD
        for _ in range(count):
            yield b" " * 1000

    headers = {"authorization": f"Bearer {TOKEN}"}
    good = await scaler.http.post("/v1/demand", content=chunks(3), headers=headers)
    assert good.status_code == 204
    long = await scaler.http.post("/v1/demand", content=chunks(66), headers=headers)
    assert long.status_code == 400


@pytest.mark.parametrize("overrides", [{"max_gateway_members": 2}])
async def test_a5_a_member_too_many_is_429_and_known_members_go_on(scaler: Any) -> None:
    assert await scaler.report("a", 1, 1) == 204
    assert await scaler.report("b", 1, 1) == 204
    assert await scaler.report("c", 1, 1) == 429
    assert await scaler.report("a", 2, 5) == 204
    metrics = await scaler.metrics()
    assert metrics["noctaya_scaler_demand"] == 6
    assert metrics['noctaya_scaler_demand_reports_total{result="capacity"}'] == 1


async def test_s1_demand_above_the_bound_is_clamped_and_counted_not_refused(scaler: Any) -> None:
    assert await scaler.report("a", 1, 100) == 204
    assert await scaler.report("b", 1, 101) == 204
    metrics = await scaler.metrics()
    assert metrics["noctaya_scaler_demand"] == 200
    assert metrics["noctaya_scaler_clamped_reports_total"] == 1


async def test_the_65th_report_in_progress_is_429_and_a_place_comes_free(scaler: Any) -> None:
    head = HEAD.format(token=TOKEN, length=len(GOOD)).encode()
    held = [await raw(scaler, head) for _ in range(64)]
    await eventually(lambda: scaler.app.reports.in_progress == 64)
    response = await scaler.post(GOOD)
    assert response.status_code == 429
    assert response.json()["error"]["code"] == "too_many_reports"
    reader, writer = held.pop()
    writer.write(GOOD)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
    writer.close()
    assert (await scaler.post(GOOD)).status_code == 204
    for _, writer in held:
        writer.close()
    assert json.loads(response.content)


async def test_a_slow_body_is_408_and_gives_its_place_back(scaler: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(scaler.app.reports, "_read_timeout", 0.2)
    reader, writer = await raw(scaler, HEAD.format(token=TOKEN, length=len(GOOD)).encode() + GOOD[:5])
    answer = await asyncio.wait_for(reader.read(), 30)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in answer
    assert scaler.app.reports.in_progress == 0
    writer.close()


async def test_a_sender_that_leaves_gives_its_place_back(scaler: Any) -> None:
    _, writer = await raw(scaler, HEAD.format(token=TOKEN, length=len(GOOD)).encode() + GOOD[:5])
    await eventually(lambda: scaler.app.reports.in_progress == 1)
    writer.close()
    await eventually(lambda: scaler.app.reports.in_progress == 0)


async def test_an_announced_body_that_is_too_large_is_refused_unread(scaler: Any) -> None:
    reader, writer = await raw(scaler, HEAD.format(token=TOKEN, length=10**9).encode())
    answer = await asyncio.wait_for(reader.read(), 30)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in answer
    writer.close()


async def test_nobody_without_a_token_gets_a_body_read(scaler: Any) -> None:
    reader, writer = await raw(scaler, HEAD.format(token="no", length=len(GOOD)).encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
    assert head.startswith(b"HTTP/1.1 401")
    assert scaler.app.reports.in_progress == 0
    writer.close()


async def test_a_refused_report_leaves_its_connection_usable(scaler: Any) -> None:
    reader, writer = await raw(scaler, HEAD.format(token="no", length=len(GOOD)).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    writer.write(GOOD + HEAD.format(token=TOKEN, length=len(GOOD)).encode() + GOOD)
    assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)).startswith(b"HTTP/1.1 204")
    writer.close()
