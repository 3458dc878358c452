"""The process: a loop that serves progress and takes signals, and one thread that does the command's work."""

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread

from noctaya_api.process.http_server import HttpServer
from noctaya_api.process.lifecycle import Stop
from noctaya_api.process.lifecycle import run as run_loop
from noctaya_api.process.metrics import new_registry

from noctaya_prewarm.errors import Interrupted, PrewarmError
from noctaya_prewarm.metrics import register
from noctaya_prewarm.progress import State
from noctaya_prewarm.run import Run
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.status_server import StatusApp
from noctaya_prewarm.termination import describe, write_termination

Command = Callable[[Run], None]
_REPORT_EVERY = 10.0
# A read from a dead network file system can't be woken; the process leaves without it.
_LAST_GRACE = 10.0

logger = logging.getLogger(__name__)


def execute(command: Command, *, settings: AgentSettings, serve: bool) -> int:
    """Run `command` to its end, the deadline or a signal, and leave the termination message.

    Args:
        command: what to do; it runs in a thread of its own.
        settings: the checked environment.
        serve: whether progress is served and the deadline applies, as for all but quick commands and waits.

    Returns:
        The exit code.
    """
    run = Run(settings, limited=serve)
    error = run_loop(_supervise(run, command, serve=serve))
    run.progress.enter(State.DONE if error is None else State.FAILED)
    content = describe(run, error)
    write_termination(settings.termination_log, content)
    level = logging.INFO if error is None else logging.ERROR
    logger.log(
        level, str(content["message"]), extra={key: content[key] for key in content if key != "message"}
    )
    return 0 if error is None else error.code


async def _supervise(run: Run, command: Command, *, serve: bool) -> PrewarmError | None:
    stop = Stop()
    stop.install()
    loop = asyncio.get_running_loop()
    done: asyncio.Future[PrewarmError | None] = loop.create_future()
    server = await _start_server(run) if serve else None
    # A thread of one's own and not of a pool: work that is stuck in a dead file system must not keep the
    # process from leaving.
    work = Thread(target=_work, args=(run, command, done, loop), name="work", daemon=True)
    stopping = asyncio.create_task(_on_stop(stop, run), name="stop")
    deadline = loop.call_later(run.remaining, run.expire) if math.isfinite(run.remaining) else None
    run.add_waker(partial(_leave_soon, run, done, loop))
    reporting = asyncio.create_task(_report(run), name="report")
    work.start()
    try:
        return await done
    finally:
        if deadline is not None:
            deadline.cancel()
        for task in (stopping, reporting):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if server is not None:
            await server.drain(0.5)


def _work(
    run: Run,
    command: Command,
    done: "asyncio.Future[PrewarmError | None]",
    loop: asyncio.AbstractEventLoop,
) -> None:
    error: PrewarmError | None = None
    try:
        command(run)
    except PrewarmError as failure:
        error = failure
    except BaseException as failure:  # whatever it was, the termination message must tell it
        logger.exception("unexpected error")
        error = PrewarmError(f"unexpected error: {type(failure).__name__}: {failure}")
    loop.call_soon_threadsafe(_settle, done, error)


def _settle(done: "asyncio.Future[PrewarmError | None]", error: PrewarmError | None) -> None:
    if not done.done():
        done.set_result(error)


def _leave_soon(
    run: Run, done: "asyncio.Future[PrewarmError | None]", loop: asyncio.AbstractEventLoop
) -> None:
    loop.call_soon_threadsafe(loop.call_later, _LAST_GRACE, _settle, done, run.error)


async def _on_stop(stop: Stop, run: Run) -> None:
    await stop.wait()
    run.abort(Interrupted("stopped by a signal; what has arrived stays, the next run goes on from there"))


async def _report(run: Run) -> None:
    while True:
        await asyncio.sleep(_REPORT_EVERY)
        logger.info("progress", extra=run.progress.snapshot().as_json())


async def _start_server(run: Run) -> HttpServer | None:
    registry = new_registry()
    register(registry, run.progress)
    server = HttpServer(StatusApp(run.progress, registry), listen=run.settings.listen_addr)
    try:
        await server.start()
    except OSError as error:
        logger.warning(
            "progress is not served; set NOCTAYA_PREWARM_LISTEN_ADDR to a free address",
            extra={"address": run.settings.listen_addr, "why": str(error)},
        )
        return None
    logger.info("serving", extra={"http_port": server.port})
    return server
