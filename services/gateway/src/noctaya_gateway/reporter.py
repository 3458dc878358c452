"""Reports of this gateway's demand to the aggregate scaler (contracts 3.11, behaviour G12).

One report on every change of published demand and one every two seconds, one after the other, each with
a sequence number of its own, one second at most. Success is 204 and nothing else. After anything else -
an error status, a timeout, a broken connection - the connection is thrown away and the next report
resolves and connects anew: a keep-alive connection that answers wrongly is never asked twice. A failed
report is tried again after a quarter of a second, then ever later up to the beat.

A report that belongs to an activation names it in its headers, where a scaler that knows nothing of it
ignores them: its id, and the `traceparent` of the request that began it if that is traced.

At the end of the drain the report is withdrawn: demand 0, and no report after it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable

import httpx
from noctaya_api.demand.report import DemandReport
from noctaya_api.names import HEADER_ACTIVATION_ID
from noctaya_api.process.token_file import TokenFile, TokenUnavailable

from noctaya_gateway.delivery import Delivery
from noctaya_gateway.demand import DemandMeter
from noctaya_gateway.metrics import GatewayMetrics
from noctaya_gateway.timeline import ActivationTimeline, Moments

log = logging.getLogger(__name__)

BEAT = 2.0
"""Seconds between reports without a change (contracts 4.5)."""
TIMEOUT = 1.0
"""Seconds one report may take (contracts 4.5)."""
RETRY = 0.25
"""Seconds until a failed report is tried again; doubles with every failure, up to the beat."""


class Reporter:
    """Reports to `url` as `<gateway_id>/<24 random hex digits>`."""

    def __init__(
        self,
        *,
        url: str,
        gateway_id: str,
        token: TokenFile,
        meter: DemandMeter,
        delivery: Delivery,
        metrics: GatewayMetrics,
        timeline: ActivationTimeline,
        make_client: Callable[[], httpx.AsyncClient] | None = None,
    ) -> None:
        self.member_id = f"{gateway_id}/{secrets.token_hex(12)}"
        self._url = url
        self._token = token
        self._meter = meter
        self._delivery = delivery
        self._metrics = metrics
        self._timeline = timeline
        self._make_client = make_client or client_maker(url)
        self._client: httpx.AsyncClient | None = None
        self._sequence = 0
        self._token_index = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to report."""
        self._task = asyncio.create_task(self._report(), name="demand-reporter")

    async def withdraw(self) -> bool:
        """Stop reporting and report demand 0 once, within a second; True when nothing is left to expire."""
        if self._task is None:
            return True
        self._task.cancel()
        await asyncio.wait([self._task])
        self._task = None
        # A report that was under way may have left the connection in any state.
        await self._hang_up()
        accepted = await self._send(0)
        await self._hang_up()
        return accepted

    async def _report(self) -> None:
        failures = 0
        while True:
            state = self._meter.flush()
            failures = 0 if await self._send(state.demand) else failures + 1
            pause = BEAT if failures == 0 else min(RETRY * 2.0 ** min(failures - 1, 8), BEAT)
            try:
                async with asyncio.timeout(pause):
                    await self._meter.changed(state.version)
            except TimeoutError:
                continue

    async def _send(self, demand: int) -> bool:
        self._sequence += 1
        report = DemandReport(member_id=self.member_id, sequence=self._sequence, demand=demand)
        activation = self._timeline.pending if demand > 0 else None
        try:
            tokens = self._token.tokens()
            authorization = b"Bearer " + tokens[self._token_index % len(tokens)]
            if self._client is None:
                self._client = self._make_client()
            async with asyncio.timeout(TIMEOUT):
                response = await self._client.post(
                    self._url,
                    content=report.to_json(),
                    headers={
                        b"Authorization": authorization,
                        b"Content-Type": b"application/json",
                        **_names(activation),
                    },
                )
        except TokenUnavailable as error:
            return self._failed(str(error))
        except TimeoutError:
            return await self._reconnect(f"no answer within {TIMEOUT:g} s")
        except httpx.HTTPError as error:
            return await self._reconnect(f"{type(error).__name__}: {error}")
        if response.status_code == httpx.codes.NO_CONTENT:
            self._metrics.report("success")
            self._delivery.told()
            self._timeline.told(activation)
            return True
        if response.status_code == httpx.codes.UNAUTHORIZED:
            # During a rotation one side may know the other line of the token file first.
            self._token_index += 1
        return await self._reconnect(f"status {response.status_code}")

    async def _reconnect(self, why: str) -> bool:
        self._metrics.reconnect("report")
        await self._hang_up()
        return self._failed(why)

    def _failed(self, why: str) -> bool:
        self._metrics.report("error")
        self._delivery.failed(why)
        log.debug("demand report failed", extra={"error": why})
        return False

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _names(activation: Moments | None) -> dict[bytes, bytes]:
    """The headers by which a report names its activation."""
    if activation is None:
        return {}
    headers = {HEADER_ACTIVATION_ID.encode(): activation.id.encode()}
    if activation.traceparent:
        headers[b"traceparent"] = activation.traceparent.encode()
    return headers


def client_maker(url: str) -> Callable[[], httpx.AsyncClient]:
    """Makes clients for `url`; the certificates of an https one are read once, not at every reconnect."""
    trust = (
        ssl.create_default_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )

    def make() -> httpx.AsyncClient:
        return httpx.AsyncClient(
            trust_env=False,
            verify=trust,
            follow_redirects=False,
            timeout=TIMEOUT,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
        )

    return make
