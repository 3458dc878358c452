"""What all exchanges of a gateway share, and where a new one starts.

The engines know this object only: it says which paths are the gateway's own and opens an exchange for
everything else.
"""

from __future__ import annotations

import asyncio

from noctaya_gateway.access_log import AccessLog
from noctaya_gateway.body import BufferBudget
from noctaya_gateway.client import Client
from noctaya_gateway.exchange import Exchange
from noctaya_gateway.gate import Gate
from noctaya_gateway.request import NOTABLE, Request
from noctaya_gateway.upstream.pool import UpstreamPool

OPERATIONS_PATHS = frozenset(
    (
        b"/healthz",
        b"/readyz",
        b"/metrics",
        b"/noctaya/queue",
        b"/noctaya/activations",
        b"/noctaya/openapi.json",
    )
)
"""Exact paths that are the gateway's own; anything else belongs to the backend (contracts 3.2)."""

_PREFIXES = tuple({path[:5] for path in OPERATIONS_PATHS})


class DataPath:
    """The shared parts of the data path; give it to an engine.

    Args:
        gate: the control side.
        pool: connections to the backends; told here to forget addresses that leave.
        budget: request bytes that may be held in total.
        max_body: largest request body in bytes.
        body_timeout: seconds for the first MiB of a body and for each further one.
        access: the access log; None for none.
    """

    def __init__(
        self,
        *,
        gate: Gate,
        pool: UpstreamPool,
        budget: BufferBudget,
        max_body: int,
        body_timeout: float,
        access: AccessLog | None = None,
    ) -> None:
        self.gate = gate
        self.pool = pool
        self.budget = budget
        self.max_body = max_body
        self.body_timeout = body_timeout
        self.access = access
        self.exchanges: set[Exchange] = set()
        """Those that go on."""
        self.loop = asyncio.get_running_loop()
        self.notable = NOTABLE | gate.auth.credential_headers
        gate.balancer.subscribe(removed=pool.drop)

    @staticmethod
    def is_operation(target: bytes) -> bool:
        """True when `target` is one of the gateway's own paths, with or without a query."""
        return target.startswith(_PREFIXES) and target.partition(b"?")[0] in OPERATIONS_PATHS

    def part(self) -> None:
        """This process stops: tell every request that can still be told, held or in flight; the others, raw
        bytes and answers that are no event streams, go on until they are cut.
        """
        for exchange in list(self.exchanges):
            exchange.part()

    def open(self, client: Client, request: Request) -> Exchange:
        """A new exchange for `request`; nothing happens before its `begin`."""
        return Exchange(self, client, request)
