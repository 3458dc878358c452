"""`python -m noctaya_bench.stub --port PORT [--cold]`: run the stub until it is terminated."""

from __future__ import annotations

import argparse
import asyncio
import resource

import uvloop

from .connection import StubConnection
from .sightings import Sightings

BACKLOG = 16384  # thousands of held requests are released at once; the kernel caps it at net.core.somaxconn


async def serve(port: int, *, ready: bool) -> None:
    sightings = Sightings(ready=ready)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: StubConnection(sightings), "127.0.0.1", port, backlog=BACKLOG)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="noctaya_bench.stub")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cold", action="store_true", help="answer /health with 503 until told otherwise")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(serve(options.port, ready=not options.cold))


if __name__ == "__main__":
    main()
