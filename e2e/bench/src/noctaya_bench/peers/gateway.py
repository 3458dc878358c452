"""The gateway itself with every feature on: authentication, admission, metrics, request ids, own scaler."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from ..children import free_port
from ..lab import Lab
from ..payloads import API_KEY
from .peer import Peer


class Engine(StrEnum):
    """The two values of NOCTAYA_HTTP_ENGINE."""

    PROTOCOL = "protocol"
    ASGI = "asgi"


async def start_gateway(
    lab: Lab, upstream: int, *, engine: Engine = Engine.PROTOCOL, env: Mapping[str, str] | None = None
) -> Peer:
    """Start a gateway before the port `upstream`; `env` overrides the bench's settings.

    The limits are those of the load (the default of 100 slots would answer 429 to 256 connections); the drain
    is shortened because the bench stops many gateways.
    """
    port = free_port()
    key_file = lab.directory / "client-keys"
    key_file.write_text(f"{API_KEY}\n")
    settings = {
        "NOCTAYA_BACKEND_URL": f"http://127.0.0.1:{upstream}",
        "NOCTAYA_LISTEN_ADDR": f"127.0.0.1:{port}",
        "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_CLIENT_API_KEY_FILE": str(key_file),
        "NOCTAYA_HTTP_ENGINE": engine.value,
        "NOCTAYA_MAX_QUEUE": "6000",
        "NOCTAYA_LAME_DUCK": "0s",
        "NOCTAYA_DRAIN_TIMEOUT": "1s",
        **(env or {}),
    }
    command = str(Path(sys.executable).with_name("noctaya-gateway"))
    child = await lab.start(f"gateway-{engine}-{port}", [command], env=settings)
    await child.listening(port)
    return Peer(name=f"gateway ({engine})", port=port, pids=(child.pid,))
