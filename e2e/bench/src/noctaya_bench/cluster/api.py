"""The bench's own asynchronous view of the API server: plain requests and watches, JSON in and out."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
CONNECTIONS = 32
SECONDS = 60.0
WATCH_SECONDS = 3600


class ApiRefused(RuntimeError):
    """The server's answer was not a success."""


class Api:
    """An asynchronous context manager; `path` is everything after the host.

    Args:
        server: its URL. Plain HTTP is that of a proxy which logs in for us.
        token: of the user; blank behind a proxy.
        ca_file: who signed the server's certificate.
    """

    def __init__(self, server: str, *, token: str = "", ca_file: Path | None = None) -> None:
        headers = {"User-Agent": "noctaya-bench"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.AsyncClient(
            base_url=server,
            headers=headers,
            verify=ssl.create_default_context(cafile=None if ca_file is None else str(ca_file)),
            timeout=SECONDS,
            limits=httpx.Limits(max_connections=CONNECTIONS),
            trust_env=False,
        )

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def create(self, collection: str, obj: Object) -> Object:
        """POST."""
        return await self._send("POST", collection, obj)

    async def merge(self, path: str, body: Mapping[str, Any]) -> Object:
        """JSON merge patch."""
        return await self._send("PATCH", path, body, content_type=MERGE)

    async def get(self, path: str) -> Object:
        """GET."""
        return await self._send("GET", path)

    async def watch(self, collection: str, **query: str) -> AsyncIterator[Object]:
        """Everything there is, then every change, as watch events without bookmarks."""
        params = {"watch": "true", "timeoutSeconds": str(WATCH_SECONDS), **query}
        async with self._http.stream("GET", collection, params=params, timeout=None) as answer:
            if not answer.is_success:
                await answer.aread()
                raise ApiRefused(f"watch {collection}: {answer.status_code} {answer.text[:300]}")
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiRefused(f"watch {collection}: {event['object'].get('message')}")
                yield event

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
    ) -> Object:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type}
        answer = await self._http.request(method, path, content=content, headers=headers)
        if not answer.is_success:
            raise ApiRefused(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        found: Object = answer.json()
        return found
