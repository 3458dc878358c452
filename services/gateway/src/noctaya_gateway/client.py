"""What an exchange needs of the connection to its client; the engines implement it.

All calls are synchronous and never fail: a client that left is told to the exchange by `client_gone`, and
until then writing to it has no effect that matters. The exchange says what to send; how a body of unknown
length is delimited (chunks, or the end of the connection for HTTP/1.0) is the engine's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Header = tuple[bytes, bytes]

UNKNOWN = -1
"""Body length that only its end will tell."""

BODILESS = -2
"""No body follows the head, whatever its headers say: HEAD, 204, 304."""


class Client(Protocol):
    """The client's side of one request."""

    def send_continue(self) -> None:
        """Ask for the body that the client holds back (100 Continue)."""

    def send_interim(self, status: int, reason: bytes, lines: list[bytes]) -> None:
        """Pass an interim response on; nothing happens for a client that can't take one."""

    def send_head(
        self, status: int, reason: bytes, lines: list[bytes], length: int, *, close: bool = False
    ) -> None:
        """Start the response; it may leave together with the first body bytes, at the latest with `flush`.

        `lines` are the headers, without line ends. `length` is the number
        of body bytes, which the headers announce too, or UNKNOWN, or BODILESS. With `close` the connection
        ends after this response, and the client is told so.
        """

    def send_body(self, data: bytes) -> None:
        """Send body bytes, not empty."""

    def flush(self) -> None:
        """Let everything go that was handed over so far."""

    def finish(self, trailers: Sequence[Header] = (), *, close: bool = False) -> None:
        """The response is complete; with `close` the connection ends after it."""

    def abort(self) -> None:
        """Cut the connection so that the client sees a truncated response."""

    def pause_reading(self) -> None:
        """Take no more body bytes from the client for now."""

    def resume_reading(self) -> None:
        """Undo `pause_reading`."""
