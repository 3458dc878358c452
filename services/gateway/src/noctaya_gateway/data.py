"""Builds the data path from the settings: connections to backends, the buffer budget, and the engine in
front.

Two engines serve the same exchanges. `protocol` extends uvicorn's own protocol class and is the fast
one; `asgi` uses public interfaces only and is kept as the fallback (NOCTAYA_HTTP_ENGINE).
"""

from __future__ import annotations

import asyncio
import sys
import time

from fastapi import FastAPI
from noctaya_api.process.http_server import HttpServer

from noctaya_gateway.access_log import NONE, AccessLog
from noctaya_gateway.asgi import ModelApp
from noctaya_gateway.body import BufferBudget
from noctaya_gateway.control import Control
from noctaya_gateway.datapath import DataPath
from noctaya_gateway.line_writer import LineWriter
from noctaya_gateway.protocol import model_protocol
from noctaya_gateway.settings import GatewaySettings
from noctaya_gateway.tunnel import tunnel_protocol
from noctaya_gateway.upstream.pool import UpstreamPool


def build_data(settings: GatewaySettings, control: Control) -> DataPath:
    """The data path over `control`; opens nothing yet."""
    server_hostname = settings.backend_address.host if settings.backend_tls else None
    pool = UpstreamPool(tls=control.tls, server_hostname=server_hostname)
    budget = BufferBudget(settings.max_buffered_bytes)
    metrics = control.gate.metrics
    metrics.gauge("buffered_bytes", "Request bytes held at the moment.", lambda: budget.used)
    metrics.gauge("upstream_connections", "Open connections to backends.", lambda: pool.open_connections)
    access = open_access_log(settings.access_log)
    if access is not None:
        writer = access.writer
        metrics.counter("access_log_lines", "Lines written to the access log.", lambda: writer.written)
        metrics.counter(
            "access_log_lost",
            "Lines lost because the log was slow, full or closed.",
            lambda: writer.dropped + writer.failed,
        )
    return DataPath(
        gate=control.gate,
        pool=pool,
        budget=budget,
        max_body=settings.max_body_bytes,
        body_timeout=settings.body_timeout,
        access=access,
    )


def open_access_log(kind: str) -> AccessLog | None:
    """The access log on standard output; None for `none`, or when there is no standard output."""
    if kind == NONE or sys.__stdout__ is None:
        return None
    loop = asyncio.get_running_loop()
    return AccessLog(kind, LineWriter(sys.__stdout__.fileno(), loop=loop), clock=time.monotonic)


def build_server(settings: GatewaySettings, data: DataPath, operations: FastAPI) -> HttpServer:
    """The HTTP server with the chosen engine; not started."""
    asgi = settings.http_engine == "asgi"
    return HttpServer(
        ModelApp(data, operations=operations) if asgi else operations,
        listen=settings.listen_addr,
        http="httptools" if asgi else model_protocol(data),
        ws=tunnel_protocol(data),
        # The backend's Date passes through; an answer of our own brings one.
        date_header=False,
    )
