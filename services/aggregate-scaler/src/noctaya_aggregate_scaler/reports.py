"""`POST /v1/demand`: the checks of contracts 4.2, in its order, and the answers.

The order matters: a busy or misconfigured scaler says so before it looks at credentials, and nobody without a
credential gets a body read.
"""

import json
from typing import Final

from noctaya_api.demand.ledger import Outcome
from noctaya_api.demand.report import InvalidReport, parse_report
from noctaya_api.names import HEADER_ACTIVATION_ID
from starlette.requests import Request
from starlette.responses import Response

from noctaya_aggregate_scaler.activations import Activations
from noctaya_aggregate_scaler.aggregate import Aggregate
from noctaya_aggregate_scaler.auth import ReportAuthenticator, TokenUnavailable
from noctaya_aggregate_scaler.metrics import ScalerMetrics
from noctaya_aggregate_scaler.report_body import (
    DISCARD_LIMIT,
    READ_TIMEOUT,
    BodyTooLarge,
    BodyTooSlow,
    SenderGone,
    announced_length,
    read_body,
)

MAX_CONCURRENT: Final = 64
"""Reports in progress at once (contracts 4.5)."""

ACTIVATION_ID: Final = HEADER_ACTIVATION_ID.encode()

_ACCEPTED: Final = Response(status_code=204)


class Refusal(Exception):
    """An answer that is not 204.

    Args:
        status: of the answer.
        reason: the error's code, and the label of the rejections counter.
        message: for people.
        unread: whether the body, or some of it, was left unread.
    """

    def __init__(self, status: int, reason: str, message: str, *, unread: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.unread = unread


class ReportHandler:
    """Takes reports up into the aggregate.

    Args:
        aggregate: where accepted reports go.
        authenticator: who may report.
        metrics: what is counted.
        activations: hears which activation a report belongs to.
        read_timeout: seconds until a body must be complete.
    """

    def __init__(
        self,
        aggregate: Aggregate,
        authenticator: ReportAuthenticator,
        metrics: ScalerMetrics,
        *,
        activations: Activations,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        self._aggregate = aggregate
        self._authenticator = authenticator
        self._metrics = metrics
        self._activations = activations
        self._read_timeout = read_timeout
        self._in_progress = 0

    @property
    def in_progress(self) -> int:
        """Reports being read or answered."""
        return self._in_progress

    async def handle(self, request: Request) -> Response:
        """Answer one report."""
        self._in_progress += 1
        try:
            self._make_room()
            self._authenticate(request)
            await self._record(request)
        except Refusal as refusal:
            self._metrics.rejected[refusal.reason] += 1
            return render_refusal(refusal, close=refusal.unread and _is_long(request))
        finally:
            self._in_progress -= 1
        return _ACCEPTED

    def _make_room(self) -> None:
        if self._in_progress > MAX_CONCURRENT:
            raise Refusal(429, "too_many_reports", "too many reports are in progress", unread=True)

    def _authenticate(self, request: Request) -> None:
        try:
            accepted = self._authenticator.accepts(_header(request, b"authorization"))
        except TokenUnavailable as error:
            raise Refusal(
                503, "authentication_unavailable", "the report token can't be read", unread=True
            ) from error
        if not accepted:
            raise Refusal(401, "unauthorized", "a valid report token is required", unread=True)

    async def _record(self, request: Request) -> None:
        try:
            body = await read_body(
                request.receive,
                announced=_header(request, b"content-length"),
                seconds=self._read_timeout,
            )
            report = parse_report(body)
        except BodyTooLarge as error:
            raise Refusal(400, "invalid_report", "the body is too large", unread=True) from error
        except BodyTooSlow as error:
            raise Refusal(408, "timeout", "the body did not arrive in time", unread=True) from error
        except SenderGone as error:
            raise Refusal(400, "sender_gone", "the sender left", unread=True) from error
        except InvalidReport as error:
            raise Refusal(400, "invalid_report", str(error)) from error
        if report.demand > 0:
            # Before KEDA can be told of it.
            named, parent = _header(request, ACTIVATION_ID), _header(request, b"traceparent")
            self._activations.reported(report.member_id, named, parent)
        recorded = self._aggregate.record(report)
        self._metrics.reports[recorded.outcome] += 1
        self._metrics.clamped += recorded.clamped
        if recorded.outcome is Outcome.CAPACITY:
            raise Refusal(429, "capacity", "too many gateway members are known")


def render_refusal(refusal: Refusal, *, close: bool) -> Response:
    """The JSON answer for a refusal; `close` ends the connection after it."""
    body = json.dumps({"error": {"code": refusal.reason, "message": refusal.message}})
    headers = {}
    if close or refusal.status == 408:
        headers["connection"] = "close"
    if refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refusal.status in {429, 503}:
        headers["retry-after"] = "2"
    return Response(body, status_code=refusal.status, headers=headers, media_type="application/json")


def _is_long(request: Request) -> bool:
    """Whether what may still come is too long to be read and dropped behind the answer.

    A short rest is: closing under a sender that is still sending would reset the connection and lose the
    answer.
    """
    if _header(request, b"transfer-encoding") is not None:
        return True
    return announced_length(_header(request, b"content-length")) > DISCARD_LIMIT


def _header(request: Request, name: bytes) -> bytes | None:
    """The first header of that name; ASGI servers give names in lower case."""
    for key, value in request.scope["headers"]:
        if key == name:
            return bytes(value)
    return None
