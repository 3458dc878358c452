"""Whole lines out of a byte stream, however it is chunked.

aiohttp's own line reader gives up on lines longer than its buffer; a watch event may be megabytes long.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

MAX_LINE = 64 * 1024 * 1024
"""Bytes; an object can't be larger than etcd's request limit (1.5 MiB by default, more when raised)."""


class CutLine(Exception):
    """The stream ended inside a line, or a line outgrew the limit."""


async def whole_lines(chunks: AsyncIterable[bytes], *, limit: int = MAX_LINE) -> AsyncGenerator[bytes, None]:
    """Each non-empty line without its newline, as soon as it is complete.

    Raises:
        CutLine: the stream ended without a final newline, or a line is longer than `limit` bytes.
    """
    pieces: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            pieces.append(line)
            whole = b"".join(pieces)
            pieces, size = [], 0
            if whole.strip():
                yield whole
        if rest:
            pieces.append(rest)
            size += len(rest)
            if size > limit:
                raise CutLine(f"a line of more than {limit} bytes")
    if size:
        raise CutLine(f"the stream ended {size} bytes into a line")
