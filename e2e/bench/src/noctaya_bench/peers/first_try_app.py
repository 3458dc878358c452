"""The proxy most people would write first: a FastAPI route, httpx, StreamingResponse. Run by uvicorn."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host"})


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=1024)
    base_url = os.environ["BENCH_UPSTREAM"]
    async with httpx.AsyncClient(base_url=base_url, limits=limits, timeout=None, trust_env=False) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/{path:path}")
async def forward(path: str, request: Request) -> StreamingResponse:
    client: httpx.AsyncClient = request.app.state.client
    headers = [(name, value) for name, value in request.headers.items() if name not in HOP_BY_HOP]
    url = httpx.URL(path=f"/{path}", query=request.url.query.encode())
    upstream = client.build_request("POST", url, headers=headers, content=await request.body())
    response = await client.send(upstream, stream=True)
    kept = {name: value for name, value in response.headers.items() if name not in HOP_BY_HOP}
    return StreamingResponse(
        response.aiter_raw(),
        status_code=response.status_code,
        headers=kept,
        background=BackgroundTask(response.aclose),
    )
