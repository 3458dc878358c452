"""The stub as a gateway and a test see it, over a real socket."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import httpx
import pytest
from noctaya_model_stub.server import Stub
from noctaya_model_stub.settings import read_settings
from noctaya_model_stub.state import State

FAST = {"STUB_TOKEN_DELAY": "0s", "STUB_TOKEN_COUNT": "3", "HOSTNAME": "pod-a"}


class Running:
    """A stub that listens, and its address."""

    def __init__(self, **environment: str) -> None:
        settings = read_settings(["--port", "0"], {**FAST, **environment})
        self.stub = Stub(State(settings, now=time.monotonic()))
        self.url = ""

    async def __aenter__(self) -> "Running":
        self.url = f"http://127.0.0.1:{await self.stub.start()}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stub.close()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        yield client


async def test_health_is_503_until_the_startup_delay_is_over(client: httpx.AsyncClient) -> None:
    async with Running(STUB_STARTUP_DELAY="300ms") as running:
        assert (await client.get(f"{running.url}/health")).status_code == 503
        await asyncio.sleep(0.4)
        assert (await client.get(f"{running.url}/health")).status_code == 200


async def test_a_chat_stream_has_one_event_a_token_and_ends_with_done(client: httpx.AsyncClient) -> None:
    async with Running() as running:
        url = f"{running.url}/v1/chat/completions?tokens=5"
        answer = await client.post(url, json={"stream": True, "stream_options": {"include_usage": True}})
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-stub-pod"] == "pod-a"
    data = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert data[-1] == "[DONE]"
    chunks = [json.loads(each) for each in data[:-1]]
    said = [chunk["choices"][0]["delta"].get("content") for chunk in chunks[:5]]
    assert said == [f"token{index} " for index in range(5)]
    assert chunks[5]["choices"][0]["finish_reason"] == "stop"
    assert chunks[6]["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize(
    ("path", "field"), [("/v1/chat/completions", "message"), ("/v1/completions", "text")]
)
async def test_an_answer_that_does_not_stream_is_one_json_object(
    client: httpx.AsyncClient, path: str, field: str
) -> None:
    async with Running() as running:
        answer = await client.post(f"{running.url}{path}", json={"model": "m"})
    choice = answer.json()["choices"][0]
    text = choice["message"]["content"] if field == "message" else choice["text"]
    assert text == "token0 token1 token2 "
    assert answer.json()["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"'])
async def test_a_body_that_is_no_json_object_is_400(client: httpx.AsyncClient, body: bytes) -> None:
    async with Running() as running:
        assert (await client.post(f"{running.url}/v1/completions", content=body)).status_code == 400


@pytest.mark.parametrize("tokens", ["0", "-1", "x", "1.5", ""])
async def test_tokens_that_are_no_count_are_400(client: httpx.AsyncClient, tokens: str) -> None:
    async with Running() as running:
        url = f"{running.url}/v1/completions?tokens={tokens}&tokens={tokens or 'none'}"
        assert (await client.post(url, json={})).status_code == 400


async def test_a_wrong_method_is_405_and_an_unknown_path_404(client: httpx.AsyncClient) -> None:
    async with Running() as running:
        refused = await client.get(f"{running.url}/v1/chat/completions")
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        assert (await client.get(f"{running.url}/nothing")).status_code == 404


async def test_a_chunked_body_is_read(client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"max_'
        yield b'tokens": 2}'

    async with Running() as running:
        answer = await client.post(f"{running.url}/v1/completions", content=pieces())
    assert answer.json()["choices"][0]["text"] == "token0 token1 "


async def test_control_changes_everything_it_is_told_or_nothing(client: httpx.AsyncClient) -> None:
    async with Running() as running:
        control = f"{running.url}/control"
        refused = await client.post(control, json={"healthy": False, "tokenDelay": "soon"})
        assert refused.status_code == 400
        assert (await client.get(f"{running.url}/health")).status_code == 200
        assert (await client.post(control, json={"color": 1})).status_code == 400
        told = await client.post(control, json={"healthy": False, "failStatus": 429})
        assert told.json()["healthy"] is False
        assert (await client.get(f"{running.url}/health")).status_code == 503
        assert (await client.post(f"{running.url}/v1/completions", json={})).status_code == 429


async def test_control_tells_the_trace_that_the_last_completion_was_in(client: httpx.AsyncClient) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with Running() as running:
        url = f"{running.url}/v1/completions"
        await client.post(url, json={}, headers={"TraceParent": trace})
        assert (await client.post(f"{running.url}/control", json={})).json()["traceparent"] == trace
        await client.post(url, json={})
        assert (await client.post(f"{running.url}/control", json={})).json()["traceparent"] == ""


async def test_a_stream_told_to_be_cut_ends_without_its_end(client: httpx.AsyncClient) -> None:
    async with Running() as running:
        await client.post(f"{running.url}/control", json={"cutAfter": 2})
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(f"{running.url}/v1/completions", json={"stream": True})
        seen = (await client.post(f"{running.url}/control", json={})).json()
    assert (seen["broken"], seen["completed"], seen["running"]) == (1, 0, 0)


async def test_a_client_that_leaves_ends_its_stream_and_counts_as_broken(client: httpx.AsyncClient) -> None:
    async with Running(STUB_TOKEN_DELAY="20ms", STUB_TOKEN_COUNT="1000") as running:
        url = f"{running.url}/v1/completions"
        async with client.stream("POST", url, json={"stream": True}) as answer:
            async for _ in answer.aiter_bytes():
                break
        state = running.stub.state
        await asyncio.wait_for(over(running), 10)
    assert (state.broken, state.completed, state.peak) == (1, 0, 1)


async def over(running: Running) -> None:
    """Return when nothing is in flight any more."""
    while running.stub.state.running:  # noqa: ASYNC110 - the stub has nobody to tell
        await asyncio.sleep(0.01)


async def test_metrics_carry_the_names_dashboards_know(client: httpx.AsyncClient) -> None:
    async with Running() as running:
        await client.post(f"{running.url}/control", json={"waiting": 4, "kvCache": 0.25})
        await client.post(f"{running.url}/v1/completions", json={})
        text = (await client.get(f"{running.url}/metrics")).text
    assert 'vllm:num_requests_waiting{model_name="stub"} 4' in text
    assert 'vllm:kv_cache_usage_perc{model_name="stub"} 0.25' in text
    assert 'stub_completed_requests_total{model_name="stub"} 1' in text


async def test_several_requests_share_a_connection() -> None:
    async with Running() as running:
        port = int(running.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"}")
        writer.write(b"nonsense\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        await reader.read()
        writer.close()
        await writer.wait_closed()
