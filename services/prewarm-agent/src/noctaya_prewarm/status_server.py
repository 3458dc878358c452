"""`/healthz`, `/metrics` and `/progress` while a run lasts."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from noctaya_api.names import PATH_HEALTHZ, PATH_METRICS
from noctaya_api.process.metrics import render
from prometheus_client import CollectorRegistry

from noctaya_prewarm.progress import Progress

PATH_PROGRESS = "/progress"
_Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class StatusApp:
    """The ASGI application: three documents, for GET and HEAD."""

    def __init__(self, progress: Progress, registry: CollectorRegistry) -> None:
        self._progress = progress
        self._registry = registry

    async def __call__(self, scope: Mapping[str, Any], receive: object, send: _Send) -> None:
        """Answer one request."""
        status, kind, body = self._answer(scope["method"], scope["path"])
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, method: str, path: str) -> tuple[int, str, bytes]:
        if method not in {"GET", "HEAD"}:
            return 405, "text/plain; charset=utf-8", b"only GET\n"
        if path == PATH_HEALTHZ:
            return 200, "text/plain; charset=utf-8", b"ok\n"
        if path == PATH_PROGRESS:
            return 200, "application/json", json.dumps(self._progress.snapshot().as_json()).encode() + b"\n"
        if path == PATH_METRICS:
            body, kind = render(self._registry)
            return 200, kind, body
        return 404, "text/plain; charset=utf-8", b"there are /healthz, /metrics and /progress\n"
