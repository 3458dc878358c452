"""Asking prewarm agents how far they are, beside the passes and never in their way.

The agent answers on the address of its Pod. One task a download asks every few seconds, few at a time over
all downloads; what it hears is kept for the next pass, which it calls for. An agent that can't be reached -
the operator runs outside the cluster, a network policy - is asked less and less often: progress is then known
only from what its container leaves behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
from noctaya_api import names

from noctaya_operator.kube.objects import Key
from noctaya_operator.prewarm_report import Report, parse_report

log = logging.getLogger(__name__)

INTERVAL: Final = 5.0
"""Seconds between questions; each answer is a write of the status."""
LONGEST: Final = 60.0
"""The same for an agent that does not answer."""
TIMEOUT: Final = 2.0
"""Seconds an answer may take."""
CONCURRENCY: Final = 8
"""Questions at one time."""
ANSWER_LIMIT: Final = 16 * 1024
"""Bytes of an answer that are read."""

Fetch = Callable[[str], Awaitable[bytes]]


class Unanswered(Exception):
    """An agent gave no usable answer."""


@dataclass
class _Target:
    url: str
    task: asyncio.Task[None]
    told: Report | None = None


class ProgressPoller:
    """Follows downloads.

    Args:
        fetch: gets a URL; raises `Unanswered`.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._targets: dict[Key, _Target] = {}
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._news: Callable[[Key], None] = lambda service: None

    def subscribe(self, news: Callable[[Key], None]) -> None:
        """Call `news(service)` whenever an agent said something new."""
        self._news = news

    def follow(self, service: Key, address: str, *, port: int = names.PREWARM_PORT) -> Report | None:
        """Ask the agent at `address` from now on; returns what it said last, None before it said anything."""
        url = progress_url(address, port=port)
        target = self._targets.get(service)
        if target is None or target.url != url:
            self.forget(service)
            task = asyncio.create_task(self._ask(service), name=f"progress of {service}")
            target = self._targets[service] = _Target(url, task)
        return target.told

    def forget(self, service: Key) -> None:
        """Ask no more."""
        target = self._targets.pop(service, None)
        if target is not None:
            target.task.cancel()

    async def close(self) -> None:
        """Ask nobody any more."""
        tasks = [target.task for target in self._targets.values()]
        for service in list(self._targets):
            self.forget(service)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, service: Key) -> None:
        wait = INTERVAL
        while True:
            target = self._targets[service]
            try:
                async with self._slots:
                    report = parse_report(await self._fetch(target.url))
                wait = INTERVAL
            except Unanswered as error:
                log.debug("%s: %s says nothing: %s", service, target.url, error)
                report, wait = None, min(LONGEST, wait * 2)
            if report is not None and report != target.told:
                target.told = report
                self._news(service)
            await asyncio.sleep(wait)


def progress_url(address: str, *, port: int = names.PREWARM_PORT) -> str:
    """Where the agent at an address of IPv4 or IPv6 answers."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}{names.PATH_PROGRESS}"


async def fetch_progress(url: str) -> bytes:
    """The answer of an agent, over a connection of its own. Raises Unanswered."""
    timeout = aiohttp.ClientTimeout(total=TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise Unanswered(f"status {response.status}")
            body = b""
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > ANSWER_LIMIT:
                    raise Unanswered(f"more than {ANSWER_LIMIT} bytes")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unanswered(str(error) or type(error).__name__) from error
    return body
