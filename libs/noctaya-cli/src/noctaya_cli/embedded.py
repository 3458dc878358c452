"""One `noctaya run`: all services from start to ordered end."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from noctaya_cli.service import LocalService

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Embedded:
    """Runs services until a signal. The first signal stops in order, the second one kills."""

    def __init__(self, services: list[LocalService], *, stopping: Callable[[], None]) -> None:
        self._services = services
        self._stopping = stopping
        self._signals = 0
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Start, serve, stop. Raises GatewayFailed, and whatever breaks a service.

        Nothing is left running either way.
        """
        loop = asyncio.get_running_loop()
        handled = [number for number in SIGNALS if not was_silenced(number)]
        for number in handled:
            loop.add_signal_handler(number, self._signalled)
        try:
            await self._serve()
        finally:
            for number in handled:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Begin the ordered end, as the first signal does."""
        self._stop.set()

    def _signalled(self) -> None:
        self._signals += 1
        self._stop.set()
        if self._signals > 1:
            for service in self._services:
                service.kill()

    async def _serve(self) -> None:
        running: list[asyncio.Task[None]] = []
        stop = asyncio.create_task(self._stop.wait())
        try:
            starting = asyncio.create_task(self._start_all())
            await asyncio.wait({stop, starting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                running = [asyncio.create_task(service.run()) for service in self._services]
                await asyncio.wait({stop, *running}, return_when=asyncio.FIRST_COMPLETED)
                for task in running:
                    if task.done() and (error := task.exception()) is not None:
                        raise first_error(error)
            else:
                starting.cancel()
                with suppress(asyncio.CancelledError):
                    await starting
        finally:
            stop.cancel()
            self._stopping()
            await self._stop_all(running)

    async def _start_all(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for service in self._services:
                    group.create_task(service.start())
        except ExceptionGroup as errors:
            raise first_error(errors) from errors

    async def _stop_all(self, running: list[asyncio.Task[None]]) -> None:
        """Gateways first, so that what is in flight ends well.

        Then nothing scales any more; then the replicas.
        """
        await asyncio.gather(*(service.stop_gateway() for service in self._services))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.gather(*(service.stop_replicas() for service in self._services))


def was_silenced(number: signal.Signals) -> bool:
    """Was this process started to survive its terminal (nohup)? Then a hang-up goes on being ignored."""
    return number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN


def first_error(error: BaseException) -> BaseException:
    """The error itself, or the first one of a group that isn't a group again."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
