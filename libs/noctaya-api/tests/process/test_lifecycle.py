import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from noctaya_api.process.lifecycle import Stop, run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_asks_for_the_stop(number: signal.Signals) -> None:
    stop = Stop()
    stop.install()
    try:
        assert not stop.triggered
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 10)
        assert stop.triggered
    finally:
        stop.uninstall()


async def test_asking_twice_is_asking_once() -> None:
    stop = Stop()
    stop.trigger()
    stop.trigger()
    await asyncio.wait_for(stop.wait(), 10)


def test_run_returns_the_result_and_uses_uvloop_where_installed() -> None:
    async def main() -> str:
        return type(asyncio.get_running_loop()).__module__

    with ThreadPoolExecutor(1) as thread:  # its own loop, away from the one of the test session
        assert thread.submit(lambda: run(main())).result().startswith("uvloop")
