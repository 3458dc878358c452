"""Reading a report's body: bounded in bytes and in time, so that a slow sender can't hold a place."""

import asyncio
from typing import Final

from noctaya_api.demand.report import MAX_BODY_BYTES
from starlette.types import Receive

READ_TIMEOUT: Final = 5.0
"""Seconds a report may take to arrive (contracts 4.2)."""
DISCARD_LIMIT: Final = 256 * 1024
"""Bytes read and thrown away so that a sender who is still sending gets its answer rather than a reset."""


class BodyTooLarge(Exception):
    """More than 64 KiB were sent or announced."""


class BodyTooSlow(Exception):
    """The body was not complete in time."""


class SenderGone(Exception):
    """The connection ended before the body did."""


async def read_body(
    receive: Receive,
    *,
    announced: bytes | None,
    limit: int = MAX_BODY_BYTES,
    seconds: float = READ_TIMEOUT,
) -> bytes:
    """The whole body.

    Args:
        receive: the ASGI channel.
        announced: the Content-Length header, if there is one.
        limit: most bytes accepted.
        seconds: longest time until the last byte.

    Raises:
        BodyTooLarge, BodyTooSlow, SenderGone: as they say.
    """
    if announced_length(announced) > limit:
        raise BodyTooLarge
    body = bytearray()
    received = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise SenderGone
                chunk = message.get("body", b"")
                received += len(chunk)
                if received <= limit:
                    body += chunk
                elif received > DISCARD_LIMIT:
                    raise BodyTooLarge
                if not message.get("more_body", False):
                    return _within(body, received, limit)
    except TimeoutError as error:
        raise BodyTooSlow from error


def announced_length(content_length: bytes | None) -> int:
    """The announced length of a body, from its first 20 digits; 0 when none is announced."""
    return int(content_length[:20]) if content_length is not None and content_length.isdigit() else 0


def _within(body: bytearray, received: int, limit: int) -> bytes:
    if received > limit:
        raise BodyTooLarge
    return bytes(body)
