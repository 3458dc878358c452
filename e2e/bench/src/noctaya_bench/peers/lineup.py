"""Which proxies a measure compares, and how each is started before one stub."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum

from ..backend import Backend
from ..lab import Lab
from .first_try import start_first_try
from .gateway import Engine, start_gateway
from .go_proxy import start_go_proxy
from .nginx import start_nginx
from .peer import Peer

Starter = Callable[[Lab, int], Awaitable[Peer]]


class Contestant(StrEnum):
    """Everything that can stand between a client and the stub."""

    DIRECT = "direct"
    NGINX = "nginx"
    PROTOCOL = "gateway (protocol)"
    ASGI = "gateway (asgi)"
    GO = "go"
    FIRST_TRY = "fastapi + httpx"


_STARTERS: dict[Contestant, Starter] = {
    Contestant.NGINX: start_nginx,
    Contestant.PROTOCOL: functools.partial(start_gateway, engine=Engine.PROTOCOL),
    Contestant.ASGI: functools.partial(start_gateway, engine=Engine.ASGI),
    Contestant.GO: start_go_proxy,
    Contestant.FIRST_TRY: start_first_try,
}


async def start_lineup(
    lab: Lab, backend: Backend, contestants: Sequence[Contestant]
) -> dict[Contestant, Peer]:
    """Start the contestants the machine has the programs for, in the order asked for."""
    lineup: dict[Contestant, Peer] = {}
    for contestant in contestants:
        if contestant is Contestant.DIRECT:
            lineup[contestant] = Peer(name="direct", port=backend.port, pids=(backend.child.pid,))
        elif is_present(lab, contestant):
            lineup[contestant] = await _STARTERS[contestant](lab, backend.port)
    return lineup


def is_present(lab: Lab, contestant: Contestant) -> bool:
    """Whether the program of this contestant is installed."""
    if contestant is Contestant.NGINX:
        return lab.tools.nginx is not None
    return contestant is not Contestant.GO or lab.tools.go is not None
