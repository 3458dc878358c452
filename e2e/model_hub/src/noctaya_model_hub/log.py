"""What was asked of the hub, for tests to judge: who sent a token where, which ranges, how often."""

import asyncio
import fnmatch
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request.

    `route` is the hub's own name of the operation (see `faults.Match`), `path` the file it is about,
    `status` what was answered (0: nothing), `sent` the body bytes that were handed to the network.
    """

    route: str
    path: str
    method: str
    target: str
    range: str
    authorization: str
    status: int
    sent: int


@dataclass
class RequestLog:
    """All requests, oldest first. A request appears when it has ended."""

    seen: list[Seen] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, one: Seen) -> None:
        """Write a request down and wake who waits for it."""
        self.seen.append(one)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_for(self, route: str, path: str = "*", *, count: int = 1) -> list[Seen]:
        """Wait until `count` requests to a route have ended; for ever if they don't."""
        while len(found := self.of(route, path)) < count:
            await self._changed.wait()
        return found

    def of(self, route: str, path: str = "*", *, method: str = "") -> list[Seen]:
        """The requests to one route whose file matches the pattern."""
        return [
            one
            for one in self.seen
            if one.route == route and fnmatch.fnmatchcase(one.path, path) and method in {"", one.method}
        ]

    def clear(self) -> None:
        """Forget everything."""
        self.seen.clear()
