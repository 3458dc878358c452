"""Gateways as the aggregate scaler sees them: one kept connection each, a report every two seconds."""

from __future__ import annotations

import asyncio
import json

BEAT_SECONDS = 2.0


class Reporter:
    """One member; reports are answered with 204 or the bench fails."""

    def __init__(self, member: str, *, port: int, token: str) -> None:
        self._member = member
        self._port = port
        self._token = token
        self._sequence = 0
        self._turn = asyncio.Lock()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def report(self, demand: int) -> None:
        """Send one report and wait for its answer."""
        async with self._turn:
            self._sequence += 1
            report = {"memberID": self._member, "sequence": self._sequence, "demand": demand}
            body = json.dumps(report).encode()
            head = (
                f"POST /v1/demand HTTP/1.1\r\nHost: bench.local\r\nAuthorization: Bearer {self._token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            self._writer.write(head.encode() + body)
            answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 204"):
            raise RuntimeError(f"a report was answered with {answer[:200]!r}")

    async def beat(self, demand: int, *, after: float) -> None:
        """Report `demand` every `BEAT_SECONDS` until cancelled, the first time `after` seconds from now."""
        await asyncio.sleep(after)
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self.report(demand)
            due += BEAT_SECONDS
            await asyncio.sleep(max(0.0, due - loop.time()))

    def close(self) -> None:
        self._writer.close()
