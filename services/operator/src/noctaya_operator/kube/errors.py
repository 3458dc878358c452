"""What a Kubernetes API server can answer instead of the object, as types.

One hierarchy holds answers of the server and failures to reach it, so a caller has one thing to catch. A
failure to reach the server is `ServerUnavailable` with status 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """The server refused, failed, or was not reached.

    Attributes:
        status: HTTP status; 0 when there was no answer.
        reason: machine-readable reason of the Status object (`NotFound`, `Conflict`, ...); may be empty.
        message: what the server said, for people.
        details: the Status object's details (`kind`, `name`, `causes`, ...); empty when there were none.
        retry_after: seconds the server asked to wait, None when it did not ask.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or reason or f"HTTP {status}")
        self.status = status
        self.reason = reason
        self.message = message or reason or f"HTTP {status}"
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """True when the same request may succeed later without anybody changing it."""
        return isinstance(self, Conflict | TooManyRequests | ServerUnavailable | Gone)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(status={self.status}, reason={self.reason!r}, message={self.message!r})"
        )


class BadRequest(ApiError):
    """400: the request itself is malformed."""


class Unauthorized(ApiError):
    """401: the credential is missing, wrong or expired."""


class Forbidden(ApiError):
    """403: role-based access, a quota or an admission plugin refused."""


class NotFound(ApiError):
    """404: no such object (or its namespace)."""


class KindAbsent(NotFound):
    """404 on the resource path itself: this server does not serve the kind (its CRD is not installed)."""


class MethodNotAllowed(ApiError):
    """405: the kind is served but not this verb; also every create while its CRD is being deleted."""


class Conflict(ApiError):
    """409: the resourceVersion or uid did not match, or another field manager owns a field."""


class AlreadyExists(ApiError):
    """409: an object of this name exists."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is older than the history the server keeps."""


class Invalid(ApiError):
    """422: the object does not pass the schema, a CEL rule or validation."""


class TooManyRequests(ApiError):
    """429: throttled; `retry_after` says for how long."""


class ServerUnavailable(ApiError):
    """5xx, or no answer: connection refused, reset, timed out, cut (status 0)."""


SCHEMA_REFUSAL = "failed to create typed patch object"
"""How a server-side apply of a field of a wrong type is answered: with 500, though the object is at fault."""

_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    405: MethodNotAllowed,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def error_from_status(status: Mapping[str, Any], *, retry_after: float | None = None) -> ApiError:
    """The error for a `Status` object, from a response body or an ERROR watch event."""
    code = status.get("code")
    code = code if isinstance(code, int) else 500
    reason, message, details = status.get("reason"), status.get("message"), status.get("details")
    details = details if isinstance(details, Mapping) else {}
    if retry_after is None and isinstance(details.get("retryAfterSeconds"), int):
        retry_after = float(details["retryAfterSeconds"])
    return _type_of(code, reason, str(message), details)(
        code, str(reason or ""), str(message or ""), details=details, retry_after=retry_after
    )


def error_from_response(status: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
    """The error for an HTTP answer; its body may be a `Status`, plain text, or nothing."""
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and parsed.get("kind") == "Status":
        return error_from_status({**parsed, "code": status}, retry_after=retry_after)
    text = body[:1024].decode(errors="replace").strip()
    return _type_of(status, None, text, {})(status, "", text, retry_after=retry_after)


def _type_of(code: int, reason: object, message: str, details: Mapping[str, Any]) -> type[ApiError]:
    if code == 404:
        # A missing object is answered with its name in the details, an unknown path without them.
        return NotFound if details.get("name") else KindAbsent
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExists
    if code == 500 and message.startswith(SCHEMA_REFUSAL):
        return Invalid
    if code >= 500 or code == 0:
        return ServerUnavailable
    return _BY_STATUS.get(code, ApiError)
