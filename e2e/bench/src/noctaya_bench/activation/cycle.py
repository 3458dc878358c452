"""One cold start by a request, one plain scaling of the same Pod, and the way back to zero of both."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Final

from ..cluster.api import Api
from .ground import PLAIN, SERVICE
from .moments import ColdStart, PlainStart
from .observer import Observer

PATIENCE_SECONDS: Final = 120.0
BODY: Final = json.dumps(
    {"model": SERVICE, "stream": True, "max_tokens": 1, "messages": [{"role": "user", "content": "count"}]}
).encode()
HEAD: Final = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    "Content-Length: {length}\r\nConnection: close\r\n\r\n"
)


class AnswerLost(Exception):
    """A cold request did not end as it should."""


async def cold_start(observer: Observer, host: str, port: int) -> ColdStart:
    """Ask while nothing runs. Raises AnswerLost, TimeoutError."""
    observer.forget()
    requested, first_byte = await ask(host, port)
    return ColdStart(
        requested=requested,
        told=await observer.told(after=requested),
        pod=await observer.pod_start(SERVICE, after=requested),
        listed=await observer.listed(f"{SERVICE}-backend", after=requested),
        first_byte=first_byte,
    )


async def ask(host: str, port: int) -> tuple[float, float]:
    """Send a request on a new connection; when its first byte went, and when the first of the answer came.

    Raises AnswerLost unless the answer is a whole stream.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection(host, port)
        requested = time.monotonic()
        writer.write(HEAD.format(host=host, length=len(BODY)).encode() + BODY)
        answer = await reader.read(1)
        first_byte = time.monotonic()
        answer += await reader.read()
        writer.close()
    if not answer.startswith(b"HTTP/1.1 200 ") or b"data: [DONE]" not in answer:
        raise AnswerLost(answer.decode(errors="replace")[:1000])
    return requested, first_byte


async def plain_start(observer: Observer, api: Api, namespace: str) -> PlainStart:
    """What `kubectl scale` does, and what comes of it; then back to zero."""
    asked = time.monotonic()
    await _scale(api, namespace, 1)
    pod = await observer.pod_start(PLAIN, after=asked)
    left = time.monotonic()
    await _scale(api, namespace, 0)
    await observer.gone(PLAIN, after=left)
    return PlainStart(asked=asked, pod=pod)


async def _scale(api: Api, namespace: str, replicas: int) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{PLAIN}/scale"
    await api.merge(path, {"spec": {"replicas": replicas}})
