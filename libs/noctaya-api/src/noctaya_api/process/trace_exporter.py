"""The way of spans to the collector: OTLP over HTTP, with headers of a file, and a log that stays short.

The exporter of the SDK writes lines for every batch that it can't deliver and for every attempt, hundreds an
hour while a collector is away. Here an outage is one line when it begins and one when it is over.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import requests
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from noctaya_api.process.trace_headers import HeadersFile

SHORTEST: Final = 300.0
"""Seconds between two lines about outages: one that comes and goes is told of once."""

log = logging.getLogger(__name__)


class _Silent(logging.Filter):
    """Keeps what the SDK's exporter says from the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        return False


class _Session(requests.Session):
    """Remembers why the last request failed; blank if it did not."""

    failure = ""

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """Raises what `requests` does, and HeadersUnusable."""
        try:
            response = super().request(*args, **options)
        except (OSError, ValueError) as error:  # of requests, and ours
            self.failure = f"{type(error).__name__}: {error}"
            raise
        self.failure = "" if response.ok else f"{response.status_code} {response.reason}"
        return response


class CollectorExporter(SpanExporter):
    """Sends spans where the OTEL variables say.

    Args:
        headers: file with headers for every request; None for none but those of the OTEL variables.
        clock: monotonic seconds.
    """

    def __init__(self, *, headers: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        # One says with their values that headers are malformed, one again and again that spans are dropped.
        logging.getLogger("opentelemetry.util.re").setLevel(logging.CRITICAL)
        logging.getLogger("opentelemetry.sdk._shared_internal").setLevel(logging.ERROR)
        self._session = _Session()
        if headers is not None:
            self._session.auth = HeadersFile(headers)
        self._exporter: SpanExporter = OTLPSpanExporter(session=self._session)
        self._clock = clock
        self._silent = _Silent()
        logging.getLogger(trace_exporter.__name__).addFilter(self._silent)
        self._lost = 0
        self._told = False
        self._quiet_until = float("-inf")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; one that does not arrive within 10 s, or what the variables say, is lost."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._arrived()
        else:
            self._failed(len(spans))
        return result

    def shutdown(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()
        logging.getLogger(trace_exporter.__name__).removeFilter(self._silent)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Nothing waits here."""
        return True

    def _failed(self, spans: int) -> None:
        self._lost += spans
        now = self._clock()
        if not self._told and now >= self._quiet_until:
            self._told, self._quiet_until = True, now + SHORTEST
            log.warning(
                "traces can't be exported and are dropped until they can be",
                extra={"reason": self._session.failure},
            )

    def _arrived(self) -> None:
        if self._told:
            log.info("traces are exported again", extra={"spans_lost": self._lost})
        self._told, self._lost = False, 0
