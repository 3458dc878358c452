"""Asking agents: over real sockets, and the pace in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from noctaya_operator.kube.objects import Key
from noctaya_operator.progress_poller import (
    CONCURRENCY,
    ProgressPoller,
    Unanswered,
    fetch_progress,
    progress_url,
)

OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"


@asynccontextmanager
async def agent(answer: bytes, *, stall: bool = False) -> AsyncIterator[str]:
    """The URL of a server that answers every request so."""

    serving: list[asyncio.Task[None]] = []

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.create_task(serve(reader, writer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if stall:
            await writer.drain()
            await reader.read()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/progress"
        await asyncio.gather(*serving, return_exceptions=True)


async def test_an_answer_is_read_whole() -> None:
    body = b'{"bytesDone": 1}'
    async with agent(OK % (len(body), body)) as url:
        assert await fetch_progress(url) == body


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nshort",
        b"no HTTP at all\r\n\r\n",
        OK % (20_000, b"x" * 20_000),
    ],
)
async def test_an_agent_that_answers_oddly_is_not_believed(answer: bytes) -> None:
    async with agent(answer) as url:
        with pytest.raises(Unanswered):
            await fetch_progress(url)


async def test_an_agent_that_stalls_is_given_up() -> None:
    async with agent(b"HTTP/1.1 200 OK\r\n", stall=True) as url:
        async with asyncio.timeout(10):
            with pytest.raises(Unanswered):
                await fetch_progress(url)


async def test_nobody_listening_is_no_answer() -> None:
    async with agent(b"") as url:
        pass
    with pytest.raises(Unanswered):
        await fetch_progress(url)


def test_an_address_of_ipv6_goes_into_brackets() -> None:
    assert progress_url("10.0.0.7") == "http://10.0.0.7:8080/progress"
    assert progress_url("fd00::7") == "http://[fd00::7]:8080/progress"


@pytest.mark.looptime
async def test_few_agents_are_asked_at_one_time() -> None:
    asking, most = 0, 0

    async def fetch(url: str) -> bytes:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await asyncio.sleep(1)
        asking -= 1
        return b"{}"

    poller = ProgressPoller(fetch)
    for number in range(50):
        poller.follow(Key("team", f"s{number}"), f"10.0.0.{number}")
    await asyncio.sleep(60)
    await poller.close()
    assert most == CONCURRENCY


@pytest.mark.looptime
async def test_only_news_call_for_a_pass() -> None:
    answers = [b'{"bytesDone": 1}']
    news: list[Key] = []
    poller = ProgressPoller(lambda url: _now(answers[-1]))
    poller.subscribe(news.append)
    key = Key("team", "chat")
    assert poller.follow(key, "10.0.0.1") is None
    await asyncio.sleep(30)
    assert len(news) == 1
    told = poller.follow(key, "10.0.0.1")
    assert told is not None
    assert told.bytes_done == 1
    answers.append(b'{"bytesDone": 2}')
    await asyncio.sleep(6)
    assert news == [key, key]
    # A new Pod has said nothing yet.
    assert poller.follow(key, "10.0.0.2") is None
    await poller.close()
    answers.append(b'{"bytesDone": 3}')
    await asyncio.sleep(60)
    assert len(news) == 2


async def _now(answer: bytes) -> bytes:
    return answer
