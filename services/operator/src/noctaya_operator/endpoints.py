"""`/healthz`, `/readyz` and `/metrics`.

`/healthz` says that the process lives. `/readyz` says that its caches hold the cluster; a standby that waits
for the lease is ready too, and an API server that went away later does not make a ready one unready:
restarting would not bring it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from noctaya_api import names
from noctaya_api.process.metrics import render
from prometheus_client import CollectorRegistry

from noctaya_operator.settings import PROGRAM


def build_health(not_ready: Callable[[], Sequence[str]]) -> FastAPI:
    """Liveness and readiness; `not_ready` lists what is waited for."""
    app = _bare("Noctaya operator: health")

    @app.get(names.PATH_HEALTHZ, response_class=PlainTextResponse)
    async def healthz() -> str:
        """The process lives."""
        return "ok\n"

    @app.get(names.PATH_READYZ, response_class=PlainTextResponse)
    async def readyz(response: Response) -> str:
        """The caches hold the cluster."""
        waiting = not_ready()
        if not waiting:
            return "ok\n"
        response.status_code = 503
        return "".join(f"waiting for {each}\n" for each in waiting)

    return app


def build_metrics(registry: CollectorRegistry) -> FastAPI:
    """Prometheus' text format, or OpenMetrics with exemplars for readers that accept it."""
    app = _bare("Noctaya operator: metrics")

    @app.get(names.PATH_METRICS)
    async def metrics(request: Request) -> Response:
        """All metrics."""
        body, content_type = render(registry, request.headers.get("accept"))
        return Response(body, media_type=content_type)

    return app


def _bare(title: str) -> FastAPI:
    return FastAPI(title=title, version=version(PROGRAM), openapi_url=None, docs_url=None, redoc_url=None)
