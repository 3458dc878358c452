"""HTTP/1 messages as bytes: just enough parsing to judge what was really sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .wire import SOON, Wire, WireEndError

Header = tuple[bytes, bytes]


@dataclass(frozen=True)
class Head:
    """A start line and its headers, order, case and duplicates kept."""

    raw: bytes
    start_line: bytes
    headers: tuple[Header, ...]

    @property
    def status(self) -> int:
        return int(self.start_line.split(b" ", 2)[1])

    @property
    def version(self) -> bytes:
        """Of a response."""
        return self.start_line.split(b" ", 1)[0]

    @property
    def method(self) -> bytes:
        return self.start_line.split(b" ", 1)[0]

    @property
    def target(self) -> bytes:
        return self.start_line.split(b" ", 1)[1].rsplit(b" ", 1)[0]

    def all(self, name: str) -> list[bytes]:
        wanted = name.lower().encode()
        return [value for key, value in self.headers if key.lower() == wanted]

    def one(self, name: str) -> bytes | None:
        """The only value of a header; a duplicate is a failure."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} sent {len(values)} times: {self.raw!r}"
        return values[0] if values else None

    @property
    def chunked(self) -> bool:
        return any(b"chunked" in value.lower() for value in self.all("transfer-encoding"))

    @property
    def length(self) -> int | None:
        value = self.one("content-length")
        return None if value is None else int(value)


def parse_head(raw: bytes) -> Head:
    """Split a head that ends with an empty line."""
    lines = raw[:-4].split(b"\r\n")
    headers = []
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        headers.append((name, value.strip(b" \t")))
    return Head(raw=raw, start_line=lines[0], headers=tuple(headers))


def render_head(start_line: bytes, headers: Iterable[Header]) -> bytes:
    return start_line + b"\r\n" + b"".join(k + b": " + v + b"\r\n" for k, v in headers) + b"\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


async def read_head(wire: Wire, within: float = SOON) -> Head:
    return parse_head(await wire.until(b"\r\n\r\n", within))


async def read_chunk(wire: Wire, within: float = SOON) -> bytes:
    """One chunk's data; empty for the last one."""
    size = int((await wire.until(b"\r\n", within)).split(b";")[0], 16)
    data = await wire.exactly(size + 2, within)
    assert data.endswith(b"\r\n"), f"chunk not closed: {data[-20:]!r}"
    return data[:-2]


@dataclass(frozen=True)
class Body:
    """A body and whether its framing said that it is whole."""

    data: bytes
    complete: bool


async def read_body(wire: Wire, head: Head, *, response: bool, within: float = SOON) -> Body:
    """Read a body by its framing. A truncated one comes back with `complete=False`."""
    if head.chunked:
        return await _read_chunked(wire, within)
    if head.length is not None:
        try:
            return Body(await wire.exactly(head.length, within), complete=True)
        except WireEndError as end:
            return Body(end.rest, complete=False)
    if not response:
        return Body(b"", complete=True)
    data = await wire.to_end(within)
    return Body(data, complete=not wire.was_reset)


async def _read_chunked(wire: Wire, within: float) -> Body:
    pieces = bytearray()
    try:
        while piece := await read_chunk(wire, within):
            pieces += piece
    except WireEndError as end:
        return Body(bytes(pieces) + end.rest, complete=False)
    return Body(bytes(pieces), complete=True)
