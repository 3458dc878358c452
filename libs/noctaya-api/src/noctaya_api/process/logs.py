"""Structured logs: one JSON object a line on stderr.

Keys, tokens and bodies are never logged; as a last line of defence an extra field whose name says it is a
credential is written as `[redacted]`.
"""

import json
import logging
import os
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request being served, set by the HTTP front and read by every log line; "" outside a request."""

LEVELS = ("debug", "info", "warning", "error", "critical")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
_CREDENTIAL_WORDS = ("authorization", "token", "api_key", "apikey", "password", "secret")


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON line: ts, level, logger, msg, service, request_id, extras, exc."""

    def __init__(self, *, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """One line, without the newline."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "ts": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            "service": self._service,
        }
        current = request_id.get()
        if current:
            line["request_id"] = current
        for name, value in vars(record).items():
            if name not in _STANDARD and name not in line:
                line[name] = "[redacted]" if _is_credential(name) else value
        if record.exc_info:
            line["exc"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def configure_logging(*, service: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Send every logger of the process, uvicorn's included, to `stream` (stderr) as JSON lines.

    Raises:
        ValueError: `level` is none of debug, info, warning, error, critical.
    """
    if level.lower() not in LEVELS:
        raise ValueError(f"log level {level!r} is none of {', '.join(LEVELS)}")
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter(service=service))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # Start-up chatter and a line for every request belong to the service itself, in its own words.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, root.level))
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    # httpx logs every request at info; probes and reports would fill the log.
    logging.getLogger("httpx").setLevel(max(logging.WARNING, root.level))
    # gRPC's core writes lines of its own to stderr, one for every refused TLS handshake. It reads this
    # when it is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def _is_credential(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in _CREDENTIAL_WORDS)
