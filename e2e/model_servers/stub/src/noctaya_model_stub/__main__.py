"""`python -m noctaya_model_stub [ENGINE ARGUMENTS]`: serve until SIGTERM. Exit 2: a bad setting."""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from noctaya_model_stub.server import Stub
from noctaya_model_stub.settings import SettingError, read_settings
from noctaya_model_stub.state import State

BAD_SETTING = 2


def main() -> None:
    """Console script `noctaya-model-stub`."""
    try:
        settings = read_settings(sys.argv[1:])
    except SettingError as error:
        print(f"noctaya-model-stub: {error}", file=sys.stderr)
        sys.exit(BAD_SETTING)
    asyncio.run(serve(State(settings, now=time.monotonic())))


async def serve(state: State) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    stub = Stub(state)
    port = await stub.start()
    print(f"noctaya-model-stub: {state.settings.model} on port {port}", file=sys.stderr, flush=True)
    await stopped.wait()
    await stub.close()


if __name__ == "__main__":
    main()
