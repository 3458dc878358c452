"""Waiting for something only another process can bring about, always with an end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until(reached: Callable[[], Awaitable[bool]], *, within: float, every: float = 0.005) -> None:
    """Ask `reached` every `every` seconds until it says yes; TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while True:
            if await reached():
                return
            await asyncio.sleep(every)
