"""Every refusal the gateway makes itself, as a type.

One error carries all that any place needs to know about it: the HTTP status, the OpenAI-style `code`
and `type`, headers that go with it (`Retry-After`, `WWW-Authenticate`), and the `reason` under which it
is counted in `noctaya_gateway_rejections_total` (None when it is not a rejection in the sense of
contracts 3.10). Rendering happens in `responses`; nothing else decides how a failure looks on the wire.
"""

from __future__ import annotations

INVALID_REQUEST = "invalid_request_error"
AUTHENTICATION = "authentication_error"
RATE_LIMIT = "rate_limit_error"
SERVER = "server_error"

Headers = tuple[tuple[bytes, bytes], ...]


def retry_after(seconds: int) -> Headers:
    """The `Retry-After` header for a whole number of seconds."""
    return ((b"retry-after", b"%d" % seconds),)


class GatewayError(Exception):
    """A request the gateway answers itself, with everything needed to say so."""

    status: int = 500
    code: str = "internal_error"
    type: str = SERVER
    reason: str | None = None

    def __init__(self, message: str, *, headers: Headers = ()) -> None:
        super().__init__(message)
        self.message = message
        self.headers = headers


class BadRequest(GatewayError):
    """The request breaks HTTP in a way that can't be passed on (400)."""

    status, code, type = 400, "bad_request", INVALID_REQUEST


class HeadTooLarge(GatewayError):
    """The request head does not end within the bytes accepted for it (431)."""

    status, code, type = 431, "request_head_too_large", INVALID_REQUEST

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The request head is larger than the {limit} bytes this gateway accepts.",
            headers=((b"connection", b"close"),),
        )


class Unauthorized(GatewayError):
    """No credential, or none that is known (401 with a challenge)."""

    status, code, type, reason = 401, "invalid_api_key", AUTHENTICATION, "unauthorized"

    def __init__(self, message: str = "The API key is missing or not valid for this service.") -> None:
        super().__init__(message, headers=((b"www-authenticate", b'Bearer realm="noctaya"'),))


class AuthenticationUnavailable(GatewayError):
    """The key file can't be read just now: nobody is let in, and no challenge is sent (503)."""

    status, code, reason = 503, "authentication_unavailable", "authentication_unavailable"

    def __init__(
        self, message: str = "The gateway cannot read its API keys at the moment. Try again shortly."
    ) -> None:
        super().__init__(message)


class ModelNotFound(GatewayError):
    """`GET /v1/models/{id}` for an id this service does not serve (404)."""

    status, code, type = 404, "model_not_found", INVALID_REQUEST


class MethodNotAllowed(GatewayError):
    """An operational endpoint was asked with a method it does not have (405)."""

    status, code, type = 405, "method_not_allowed", INVALID_REQUEST

    def __init__(self, message: str = "This endpoint answers GET and HEAD only.") -> None:
        super().__init__(message, headers=((b"allow", b"GET, HEAD"),))


class BodyTimeout(GatewayError):
    """The request body did not arrive in time (408); the connection is closed after the answer."""

    status, code, type = 408, "body_timeout", INVALID_REQUEST

    def __init__(self, message: str = "The request body did not arrive in time.") -> None:
        super().__init__(message, headers=((b"connection", b"close"),))


class RequestTooLarge(GatewayError):
    """The request body is, or says it is, larger than NOCTAYA_MAX_BODY_BYTES (413)."""

    status, code, type = 413, "request_too_large", INVALID_REQUEST

    def __init__(self, limit: int) -> None:
        super().__init__(f"The request body is larger than the {limit} bytes this gateway accepts.")


class QueueFull(GatewayError):
    """All admission slots are taken (429, Retry-After 5 by contract)."""

    status, code, type, reason = 429, "queue_full", RATE_LIMIT, "queue_full"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The service is handling as many requests as it accepts ({limit}).", headers=retry_after(5)
        )


class RateLimitExceeded(GatewayError):
    """The key made as many requests as it may for now (429); nothing was taken or woken."""

    status, code, type, reason = 429, "rate_limit_exceeded", RATE_LIMIT, "rate_limit_exceeded"

    def __init__(self, key: str, limit: int, *, retry_seconds: int, headers: Headers = ()) -> None:
        super().__init__(
            f"The key {key} may make {limit} requests a minute; try again in {retry_seconds} s.",
            headers=(*retry_after(retry_seconds), *headers),
        )


class ConcurrencyLimitExceeded(GatewayError):
    """The key has as many requests under way as it may (429); nothing was taken or woken."""

    status, code, type, reason = (
        429,
        "concurrency_limit_exceeded",
        RATE_LIMIT,
        "concurrency_limit_exceeded",
    )

    def __init__(self, key: str, limit: int, *, retry_seconds: int) -> None:
        super().__init__(
            f"The key {key} may have {limit} requests under way at a time.",
            headers=retry_after(retry_seconds),
        )


class ColdStart(GatewayError):
    """No backend is ready and this request may not, or does not want to, wait for one (503)."""

    status, code, reason = 503, "cold_start", "cold_start"

    def __init__(
        self, *, retry_seconds: int, message: str = "The model is not loaded; it is being started."
    ) -> None:
        super().__init__(message, headers=retry_after(retry_seconds))


class Prewarming(GatewayError):
    """No backend is started before its weights are there, and that takes longer than this request waits
    (503)."""

    status, code, reason = 503, "prewarming", "prewarming"

    def __init__(self, message: str, *, retry_seconds: int) -> None:
        super().__init__(message, headers=retry_after(retry_seconds))


class Asleep(GatewayError):
    """Somebody has put the service to sleep, and no demand wakes it before that is over (503)."""

    status, code, reason = 503, "asleep", "asleep"

    def __init__(self, message: str, *, retry_seconds: int) -> None:
        super().__init__(message, headers=retry_after(retry_seconds))


class ActivationTimeout(GatewayError):
    """The request waited for its whole activation timeout and no backend became ready (503)."""

    status, code, reason = 503, "activation_timeout", "activation_timeout"

    def __init__(self, *, waited: float, retry_seconds: int) -> None:
        super().__init__(
            f"The model did not become ready within {round(waited, 1):g} seconds.",
            headers=retry_after(retry_seconds),
        )


class ActivationFailed(GatewayError):
    """The activation is known to have failed, or the next one may not begin yet (503)."""

    status, code, reason = 503, "activation_failed", "activation_failed"

    def __init__(self, message: str, *, retry_seconds: int) -> None:
        super().__init__(message, headers=retry_after(retry_seconds))


class BackendUnavailable(GatewayError):
    """The backend could not be reached or broke off before it answered (502)."""

    status, code = 502, "backend_unavailable"

    def __init__(self, message: str = "The model server could not be reached.") -> None:
        super().__init__(message)


class BackendInterrupted(GatewayError):
    """The backend broke off in the middle of an answer that is already on its way (502 inside the stream)."""

    status, code = 502, "backend_interrupted"

    def __init__(
        self, message: str = "The model server closed the connection before the answer ended."
    ) -> None:
        super().__init__(message)


class BufferFull(GatewayError):
    """The gateway already buffers as many request bytes as it may (503)."""

    status, code, reason = 503, "buffer_full", "buffer_full"

    def __init__(
        self, message: str = "The gateway holds as many request bytes as it may. Try again shortly."
    ) -> None:
        super().__init__(message, headers=retry_after(1))


class Draining(GatewayError):
    """This gateway process is stopping; another one takes the next request (503)."""

    status, code = 503, "draining"

    def __init__(self, message: str = "This gateway is shutting down. Send the request again.") -> None:
        super().__init__(message, headers=((b"retry-after", b"1"), (b"connection", b"close")))
