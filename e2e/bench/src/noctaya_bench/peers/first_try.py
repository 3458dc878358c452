"""Starts the FastAPI + httpx proxy as a peer."""

from __future__ import annotations

import sys

from ..children import free_port
from ..lab import Lab
from .peer import Peer


async def start_first_try(lab: Lab, upstream: int) -> Peer:
    """Start it before the port `upstream`, with uvloop and httptools and without an access log."""
    port = free_port()
    argv = [
        *(sys.executable, "-m", "uvicorn", "noctaya_bench.peers.first_try_app:app", "--no-access-log"),
        *("--host", "127.0.0.1", "--port", str(port), "--loop", "uvloop", "--http", "httptools"),
    ]
    env = {"BENCH_UPSTREAM": f"http://127.0.0.1:{upstream}"}
    child = await lab.start("fastapi-httpx", argv, env=env)
    await child.listening(port)
    return Peer(name="fastapi + httpx", port=port, pids=(child.pid,))
