"""Sending an answer, with the faults that hit it."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from http import HTTPStatus

from noctaya_model_hub.content import Inline, OnDisk
from noctaya_model_hub.exchange import Reply, Request
from noctaya_model_hub.faults import Effect

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_TURNS_A_SECOND = 20
_SENT_AT_ONCE = 4 << 20


class Cut(Exception):
    """The connection ends here, by plan."""


def altered(reply: Reply, effect: Effect) -> Reply:
    """The reply that is sent instead, as far as status, headers and range are concerned."""
    if effect.redirect:
        reply = replace(reply, status=302, headers={"Location": effect.redirect}, start=0, end=0)
    elif effect.status:
        body = Inline(effect.body)
        reply = replace(reply, status=effect.status, headers={}, content=body, start=0, end=body.size)
    elif effect.keep_whole and reply.status == 206:
        headers = {name: value for name, value in reply.headers.items() if name != "Content-Range"}
        headers["Accept-Ranges"] = "none"
        reply = replace(reply, status=200, headers=headers, start=0, end=reply.content.size)
    changed = {name.lower() for name, _ in effect.headers}
    kept = {name: value for name, value in reply.headers.items() if name.lower() not in changed}
    return replace(reply, headers=kept | {name: value for name, value in effect.headers if value})


def head(request: Request, reply: Reply, effect: Effect) -> bytes:
    """Status line and headers."""
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if reply.status not in {204, 304}:
        lines.append(f"Content-Length: {max(0, reply.end - reply.start + effect.announce)}")
    if request.headers.get("connection", "").lower() == "close":
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def send(
    reply: Reply,
    effect: Effect,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    in_force: Callable[[], bool] = lambda: True,
) -> AsyncIterator[int]:
    """Send the body; yields the bytes of each piece that was handed to the network.

    `in_force` tells whether the effect still holds: a rate ends with it, in the middle of the body.

    Raises:
        Cut: the connection has to end now.
    """
    end = reply.end + min(0, effect.announce)
    stop, stalls = end, False
    if effect.cut_after is not None:
        stop = min(stop, reply.start + effect.cut_after)
    if effect.stall_after is not None and reply.start + effect.stall_after < stop:
        stop, stalls = reply.start + effect.stall_after, True
    loop = asyncio.get_running_loop()
    began, position = loop.time(), reply.start
    if isinstance(reply.content, OnDisk) and effect.flip_at is None and not effect.bytes_per_second:
        # The kernel copies: what a benchmark measures should be its client.
        await writer.drain()
        with reply.content.path.open("rb") as file:
            while position < stop:
                wanted = min(_SENT_AT_ONCE, stop - position)
                count = await loop.sendfile(writer.transport, file, position, wanted)
                if count < wanted:
                    raise Cut
                position += count
                yield count
    for piece in _pieces(reply, position, stop, effect):
        writer.write(piece)
        await writer.drain()
        position += len(piece)
        yield len(piece)
        if effect.bytes_per_second and in_force():
            due = began + (position - reply.start) / effect.bytes_per_second
            await asyncio.sleep(max(0.0, due - loop.time()))
    if stalls:
        # Ends when the client goes away, or when the server stops and cancels this task.
        await reader.read(1)
        raise Cut
    if effect.cut_after is not None or effect.announce > 0:
        if effect.reset:
            _reset(writer)
        raise Cut


def _pieces(reply: Reply, position: int, stop: int, effect: Effect) -> Iterator[bytes]:
    slice_size = max(1, int(effect.bytes_per_second / _TURNS_A_SECOND)) if effect.bytes_per_second else 0
    for piece in reply.content.pieces(position, stop):
        shown = piece
        if effect.flip_at is not None and position <= effect.flip_at < position + len(piece):
            changed = bytearray(piece)
            changed[effect.flip_at - position] ^= 0xFF
            shown = bytes(changed)
        position += len(piece)
        if not slice_size:
            yield shown
            continue
        for offset in range(0, len(shown), slice_size):
            yield shown[offset : offset + slice_size]


def _reset(writer: asyncio.StreamWriter) -> None:
    bound: socket.socket = writer.get_extra_info("socket")
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
