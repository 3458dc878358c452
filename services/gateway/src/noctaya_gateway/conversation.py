"""What the protocol engine carries on for one request of a connection: an exchange, or an operation of its
own."""

from __future__ import annotations

from typing import Protocol

from noctaya_gateway.errors import GatewayError
from noctaya_gateway.request import Request


class Conversation(Protocol):
    """What the engine carries on for one request: an exchange or an operation."""

    request: Request

    def begin(self) -> None:
        """The head is complete and it is this request's turn."""

    def body_arrived(self, data: bytes, *, whole: bool) -> None:
        """Body bytes, possibly none."""

    def failed(self, error: GatewayError) -> None:
        """The rest of the request can't be read."""

    def client_gone(self) -> None:
        """The connection is gone."""

    def client_blocked(self) -> None:
        """The client reads slowly."""

    def client_drained(self) -> None:
        """The client caught up."""
