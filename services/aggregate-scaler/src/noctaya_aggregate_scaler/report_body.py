"""Reading a report's body: bounded in bytes and in time, so that a slow sender can't hold a place."""

import asyncio
from typing import Final

from noctaya_api.demand.report import MAX_BODY_BYTES
from starlette.types import Receive

READ_TIMEOUT: Final = 5.0
"""Seconds a report may take to arrive (contracts 4.2)."""


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
    if announced is not None and announced.isdigit() and int(announced[:20]) > limit:
        raise BodyTooLarge
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise SenderGone
                body += message.get("body", b"")
                if len(body) > limit:
                    raise BodyTooLarge
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        raise BodyTooSlow from error
