"""A download that the operator follows: a hub, an agent behind a Job's Pod, a service that waits."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from noctaya_api import names

from noctaya_monitoring.fleet import Fleet
from noctaya_monitoring.processes import Server

MODEL: Final = "org/model"
TRIES: Final = 50


def agent_address() -> str:
    """A loopback address whose port for agents is free: the operator knows no other port.

    Raises:
        OSError: the port is taken on all of them.
    """
    for _ in range(TRIES):
        address = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}.{random.randint(2, 254)}"
        with socket.socket() as probe:
            try:
                probe.bind((address, names.PREWARM_PORT))
            except OSError:
                continue
            return address
    raise OSError(f"port {names.PREWARM_PORT} is taken on loopback: another program listens on every address")


@contextmanager
def downloading(
    fleet: Fleet, folder: Path, *, service: str, size: int, effect: Mapping[str, Any]
) -> Iterator[str]:
    """Make a service whose weights are being downloaded; gives the URL of the agent.

    Args:
        fleet: with the agents' address.
        folder: for the weights and logs.
        service: its name.
        size: bytes of the weights.
        effect: what the hub does to them, as in `noctaya_model_hub`.
    """
    with ExitStack() as stack:

        def start(program: str, *arguments: str, **env: str) -> Server:
            server = Server(program, *arguments, log=folder / f"{program}.log", env=env)
            stack.callback(server.child.stop)
            return server

        hub = start("noctaya-model-hub", "--host=127.0.0.1", "--port=0", "--cdn-port=0", "--s3-port=0")
        url = hub.words(r"hub (\S+) cdn")[1]
        files = {"config.json": "{}", "model.safetensors": {"size": size}}
        with httpx.Client(base_url=f"{url}/_hub", trust_env=False) as control:
            control.put(f"/repositories/{MODEL}", json={"files": files}).raise_for_status()
            fault = {"on": {"route": "cdn"}, "effect": dict(effect)}
            control.post("/faults", json=fault).raise_for_status()
        start(
            "noctaya-prewarm",
            "download",
            f"--source=hf://{MODEL}",
            f"--target={folder / 'model'}",
            **{
                names.ENV_PREWARM_ENDPOINT: url,
                "NOCTAYA_PREWARM_LISTEN_ADDR": f"{fleet.agent}:{names.PREWARM_PORT}",
                "NOCTAYA_PREWARM_TERMINATION_LOG": str(folder / "termination"),
            },
        )
        world = fleet.world()
        world.create(service, model={"source": {"uri": f"hf://{MODEL}"}}, cache={"prewarm": True})
        world.await_phase("Prewarming", service)
        yield f"http://{fleet.agent}:{names.PREWARM_PORT}"
