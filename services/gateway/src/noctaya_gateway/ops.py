"""The operational endpoints, with FastAPI and an OpenAPI document; model traffic never comes here.

`/healthz` says the process lives, `/readyz` that it takes requests (503 from SIGTERM on; a cold backend
is not unready: holding requests for it is the gateway's work), `/metrics` and `/noctaya/queue` are read
by monitoring and by people, `/noctaya/activations` by the operator, which puts the gateways' moments on one
line with those of the Pod. No authentication; GET and HEAD only. The OpenAPI document has a path of
its own so that it hides nothing of the backend's.
"""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import HTTPException
from fastapi.responses import JSONResponse, PlainTextResponse
from noctaya_api.gateway_activations import ActivationList
from noctaya_api.names import PATH_ACTIVATIONS, PATH_HEALTHZ, PATH_METRICS, PATH_QUEUE, PATH_READYZ
from noctaya_api.process.metrics import render
from prometheus_client import CollectorRegistry
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHTTPException

from noctaya_gateway import __version__
from noctaya_gateway.activation_list import list_activations
from noctaya_gateway.delivery import Delivery
from noctaya_gateway.errors import GatewayError, MethodNotAllowed
from noctaya_gateway.gate import Gate
from noctaya_gateway.responses import error_document

PATH_OPENAPI = "/noctaya/openapi.json"
PATHS = frozenset({PATH_HEALTHZ, PATH_READYZ, PATH_METRICS, PATH_QUEUE, PATH_ACTIVATIONS, PATH_OPENAPI})
"""Exactly these paths are the gateway's own; everything else is the model's."""


class Readiness(BaseModel):
    """Whether this gateway takes requests, and what it knows."""

    ready: bool = Field(description="takes requests; false from SIGTERM on")
    draining: bool
    backend_ready: bool = Field(description="at least one backend address is ready")
    ready_endpoints: int = Field(ge=0, description="how many are")
    prewarming: bool = Field(description="the weights are being downloaded, and nothing starts before")
    asleep: bool = Field(description="somebody has put the service to sleep")
    activating: bool = Field(description="an activation lease is held")
    held: int = Field(ge=0, description="requests waiting for a backend")
    demand: int = Field(ge=0, description="effective demand")
    demand_delivered: bool | None = Field(
        description="whether the scaler knows of the demand; null while it was not told and need not be"
    )
    undelivered_seconds: float = Field(ge=0, description="how long there has been demand nobody was told of")
    undelivered_reason: str = Field(description="last error of the delivery, or empty")


def operations(gate: Gate, delivery: Delivery) -> FastAPI:
    """The ASGI application for `PATHS`."""
    app = FastAPI(
        title="Noctaya gateway: operations",
        version=__version__,
        openapi_url=PATH_OPENAPI,
        docs_url=None,
        redoc_url=None,
    )
    # Not the shared registry: the gateway's metrics have no process_ families (contracts 3.2).
    registry = CollectorRegistry()
    registry.register(gate.metrics)

    @app.head(PATH_HEALTHZ, include_in_schema=False)
    @app.get(PATH_HEALTHZ, operation_id="healthz", response_class=PlainTextResponse)
    async def healthz() -> Response:
        """The process lives."""
        return Response(status_code=200)

    @app.head(PATH_READYZ, include_in_schema=False)
    @app.get(
        PATH_READYZ,
        operation_id="readyz",
        response_model=Readiness,
        responses={503: {"model": Readiness, "description": "shutting down"}},
    )
    async def readyz() -> Response:
        """Whether the gateway takes requests, with detail on the backend and on the delivery of demand."""
        found = readiness(gate, delivery)
        return JSONResponse(found.model_dump(), status_code=200 if found.ready else 503)

    @app.head(PATH_METRICS, include_in_schema=False)
    @app.get(PATH_METRICS, operation_id="metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Prometheus text format, or OpenMetrics with exemplars for readers that accept it."""
        body, content_type = render(registry, request.headers.get("accept"))
        return Response(body, media_type=content_type)

    @app.head(PATH_QUEUE, include_in_schema=False)
    @app.get(PATH_QUEUE, operation_id="queue", response_class=PlainTextResponse)
    async def queue() -> Response:
        """The effective demand of this gateway."""
        return PlainTextResponse(f'{{"pending":{gate.demand.effective}}}\n')

    @app.head(PATH_ACTIVATIONS, include_in_schema=False)
    @app.get(PATH_ACTIVATIONS, operation_id="activations", response_model=ActivationList)
    async def activations() -> Response:
        """The last activations, the newest first, and what time it is at this gateway."""
        return Response(list_activations(gate.timeline).to_json(), media_type="application/json")

    @app.exception_handler(StarletteHTTPException)
    async def refuse(_request: Request, error: HTTPException) -> Response:
        known = MethodNotAllowed() if error.status_code == 405 else _other(error)
        headers = {name.decode(): value.decode() for name, value in known.headers}
        return JSONResponse(error_document(known), status_code=error.status_code, headers=headers)

    return app


def readiness(gate: Gate, delivery: Delivery) -> Readiness:
    """The readiness document of this moment."""
    notice = gate.prewarming.notice()
    return Readiness(
        ready=not gate.draining,
        draining=gate.draining,
        backend_ready=gate.ready,
        ready_endpoints=len(gate.balancer.ready_addresses),
        prewarming=notice is not None and not notice.state,
        asleep=notice is not None and notice.asleep,
        activating=gate.activation.pending,
        held=len(gate.line),
        demand=gate.demand.effective,
        demand_delivered=delivery.delivered,
        undelivered_seconds=round(delivery.undelivered_seconds, 1),
        undelivered_reason=delivery.last_error,
    )


def _other(error: HTTPException) -> GatewayError:
    return GatewayError(str(error.detail))
