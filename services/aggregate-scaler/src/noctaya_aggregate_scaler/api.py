"""The HTTP side on port 9091: reports, health, readiness, metrics, and the OpenAPI document of all of it."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from noctaya_api import names
from noctaya_api.demand.report import DemandReport
from noctaya_api.process.metrics import render
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from noctaya_aggregate_scaler.reports import ReportHandler

_ERROR_SCHEMA: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
_STATUS: Final = {
    "description": "Yes",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["status"],
                "properties": {"status": {"type": "string"}},
            }
        }
    },
}


def build_api(
    *,
    version: str,
    reports: ReportHandler,
    registry: CollectorRegistry,
    readiness: Callable[[], str | None],
) -> FastAPI:
    """The application.

    Args:
        version: of this service, for the document.
        reports: answers `POST /v1/demand`.
        registry: what `/metrics` shows.
        readiness: why this process should get no traffic, or None when it should.
    """
    app = FastAPI(
        title="Noctaya aggregate scaler",
        version=version,
        summary="One view of demand over several gateways",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        code = HTTPStatus(error.status_code).name.lower()
        body = {"error": {"code": code, "message": f"{request.method} {request.url.path}: {error.detail}"}}
        return JSONResponse(body, status_code=error.status_code, headers=error.headers)

    async def healthz() -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz() -> Response:
        problem = readiness()
        if problem is None:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"error": {"code": "not_ready", "message": problem}}, status_code=503)

    async def metrics(request: Request) -> Response:
        body, content_type = render(registry, request.headers.get("accept"))
        return Response(body, headers={"content-type": content_type})

    async def demand(request: Request) -> Response:
        return await reports.handle(request)

    _probe(app, names.PATH_HEALTHZ, healthz, summary="The process is alive", responses={200: _STATUS})
    _probe(
        app,
        names.PATH_READYZ,
        readyz,
        summary="Reports are accepted and gRPC answers",
        responses={
            200: _STATUS,
            503: _error("Not ready: no usable token file, not started yet, or stopping"),
        },
    )
    _probe(
        app,
        names.PATH_METRICS,
        metrics,
        summary="Metrics in the Prometheus text format",
        responses={
            200: {"description": "Metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}
        },
    )
    app.add_api_route(
        names.PATH_DEMAND,
        demand,
        methods=["POST"],
        status_code=204,
        response_class=Response,
        response_model=None,
        summary="Report one gateway's complete demand",
        description="Sent on every change and every two seconds. 204 also answers a stale sequence. The "
        "headers x-noctaya-activation-id and traceparent may name the activation that the demand is of.",
        responses={
            400: _error("Not a report: too large, not JSON, an unknown field, or a value out of range"),
            401: _error("No valid report token"),
            408: _error("The body did not arrive within 5 s"),
            429: _error("64 reports are in progress, or no more members fit"),
            503: _error("The token file can't be used"),
        },
        openapi_extra={
            "security": [{"reportToken": []}],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/DemandReport"}}},
            },
        },
    )
    document = _document(app)
    app.openapi = lambda: document  # type: ignore[method-assign]
    return app


class ReportsFirst:
    """Sends reports straight to their handler and everything else to the documented application.

    The application has the same route, so its document is true; but dispatch, dependencies and middleware
    cost more than all of the checks, and reports are nearly all of the traffic.
    """

    def __init__(self, app: FastAPI, reports: ReportHandler) -> None:
        self._app = app
        self._reports = reports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event, as ASGI has it."""
        if scope["type"] == "http" and scope["path"] == names.PATH_DEMAND and scope["method"] == "POST":
            response = await self._reports.handle(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _probe(
    app: FastAPI,
    path: str,
    endpoint: Callable[..., Awaitable[Response]],
    *,
    summary: str,
    responses: dict[int | str, dict[str, Any]],
) -> None:
    app.add_api_route(
        path,
        endpoint,
        methods=["GET"],
        response_class=Response,
        response_model=None,
        summary=summary,
        responses=responses,
    )
    app.add_api_route(path, endpoint, methods=["HEAD"], response_model=None, include_in_schema=False)


def _error(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": _ERROR_SCHEMA}}}


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; the report's model and credential are checked by hand, so they are added here."""
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["DemandReport"] = DemandReport.model_json_schema(by_alias=True)
    components["securitySchemes"] = {"reportToken": {"type": "http", "scheme": "bearer"}}
    return document
