"""A hub with one repository, one bucket, and clients that know only it."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from noctaya_model_hub import Content, Hub, Pattern, Served, running_hub

# looptime's plugin asks for the current loop before every test; on Python 3.11 that makes one for good.
asyncio.set_event_loop(None)

WEIGHTS = Pattern(size=3_000_007, seed=7)
FILES: dict[str, Content | bytes | str] = {
    "config.json": b'{"model_type": "test"}\n',
    "tokenizer/vocab.txt": "a\nb\n",
    "model.safetensors": WEIGHTS,
    "empty.txt": b"",
}


@pytest.fixture
def hub() -> Hub:
    made = Hub()
    made.create("org/model", FILES)
    return made


@pytest.fixture
async def served(hub: Hub) -> AsyncIterator[Served]:
    async with running_hub(hub) as running:
        yield running


@pytest.fixture
async def http(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=10) as client:
        yield client
