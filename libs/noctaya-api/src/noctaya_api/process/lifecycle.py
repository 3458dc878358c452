"""The life of a process: one event loop, and one event that says it is time to stop."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stop:
    """Turns SIGTERM and SIGINT into an event; what to do then, and in which order, is the application's."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def install(self, *numbers: signal.Signals) -> None:
        """Take over these signals, both when none is named, in the running loop of the main thread."""
        loop = asyncio.get_running_loop()
        for number in numbers or (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.trigger)

    def uninstall(self) -> None:
        """Give both signals back to Python's defaults."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    def trigger(self) -> None:
        """Ask for the stop; asking again changes nothing."""
        self._event.set()

    @property
    def triggered(self) -> bool:
        """Whether the stop was asked for."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Return once the stop was asked for."""
        await self._event.wait()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end in a fresh event loop: uvloop where it is installed, asyncio's own elsewhere."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Any:
    if sys.platform == "win32":
        return None
    try:
        import uvloop  # noqa: PLC0415  optional, and absent on some platforms
    except ImportError:
        return None
    return uvloop.new_event_loop
