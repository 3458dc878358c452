from __future__ import annotations

import json

import pytest
from noctaya_gateway import errors
from noctaya_gateway.responses import (
    HEARTBEAT,
    render_error,
    render_error_event,
    render_upstream_error_event,
)

EVERY_ERROR = [
    (errors.BadRequest("no host"), 400, "bad_request", None),
    (errors.Unauthorized(), 401, "invalid_api_key", "unauthorized"),
    (errors.AuthenticationUnavailable(), 503, "authentication_unavailable", "authentication_unavailable"),
    (errors.ModelNotFound("x"), 404, "model_not_found", None),
    (errors.MethodNotAllowed(), 405, "method_not_allowed", None),
    (errors.BodyTimeout(), 408, "body_timeout", None),
    (errors.RequestTooLarge(10), 413, "request_too_large", None),
    (errors.QueueFull(3), 429, "queue_full", "queue_full"),
    (errors.ColdStart(retry_seconds=10), 503, "cold_start", "cold_start"),
    (errors.ActivationTimeout(waited=3, retry_seconds=10), 503, "activation_timeout", "activation_timeout"),
    (errors.ActivationFailed("x", retry_seconds=9), 503, "activation_failed", "activation_failed"),
    (errors.BackendUnavailable(), 502, "backend_unavailable", None),
    (errors.BackendInterrupted(), 502, "backend_interrupted", None),
    (errors.BufferFull(), 503, "buffer_full", "buffer_full"),
    (errors.Draining(), 503, "draining", None),
]
IDS = [code for _, _, code, _ in EVERY_ERROR]


def event_documents(events: bytes) -> list[dict[str, object]]:
    *complete, rest = events.split(b"\n\n")
    assert rest == b""
    assert complete[-1] == b"data: [DONE]"
    assert all(event.startswith(b"data: ") and b"\n" not in event for event in complete)
    return [json.loads(event.removeprefix(b"data: ")) for event in complete[:-1]]


@pytest.mark.parametrize(("error", "status", "code", "reason"), EVERY_ERROR, ids=IDS)
def test_g2_every_error_is_an_openai_error(
    error: errors.GatewayError, status: int, code: str, reason: str | None
) -> None:
    reply = render_error(error, b"request-7")
    document = json.loads(reply.body)
    headers = dict(reply.headers)
    assert reply.status == status
    assert set(document) == {"error"}
    assert set(document["error"]) == {"message", "type", "param", "code"}
    assert document["error"]["code"] == code
    assert document["error"]["message"]
    assert document["error"]["param"] is None
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"content-length"] == b"%d" % len(reply.body)
    assert headers[b"x-request-id"] == b"request-7"
    assert error.reason == reason
    assert set(error.headers) <= set(reply.headers)


@pytest.mark.parametrize(("error", "status", "code", "reason"), EVERY_ERROR, ids=IDS)
def test_g2_on_a_committed_stream_an_error_is_one_event_then_done(
    error: errors.GatewayError, status: int, code: str, reason: str | None
) -> None:
    (document,) = event_documents(render_error_event(error))
    found = document["error"]
    assert isinstance(found, dict)
    assert (found["status"], found["code"]) == (status, code)
    assert "choices" not in document


def test_retry_after_is_there_wherever_a_retry_makes_sense() -> None:
    for error, status, code, _ in EVERY_ERROR:
        promised = b"retry-after" in dict(error.headers)
        assert promised == (status in (429, 503) and code != "authentication_unavailable"), code


@pytest.mark.parametrize(
    ("body", "message", "code", "kind"),
    [
        (b'{"error":{"message":"too long","type":"BadRequestError","param":"messages","code":400}}',
         "too long", 400, "BadRequestError"),
        (b'{"object":"error","message":"no such model","type":"NotFoundError","code":404}',
         "no such model", 404, "NotFoundError"),
        (b'{"error":"plain"}', "plain", None, "invalid_request_error"),
        (b'{"detail":"Not Found"}', "Not Found", None, "invalid_request_error"),
        (b"upstream says no\n", "upstream says no", None, "invalid_request_error"),
        (b"", "The model server answered with status 422.", None, "invalid_request_error"),
        (b"[1,2]", "[1,2]", None, "invalid_request_error"),
        (b"\xff\xfe\n\n\r\ndata: x\n\n", "\ufffd\ufffd\n\n\r\ndata: x", None, "invalid_request_error"),
        (b"[" * 100_000, "[" * 65536, None, "invalid_request_error"),
    ],
)  # fmt: skip
def test_g2_an_upstream_error_after_commit_is_one_event_with_its_status(
    body: bytes, message: str, code: object, kind: str
) -> None:
    (document,) = event_documents(render_upstream_error_event(422, body))
    found = document["error"]
    assert isinstance(found, dict)
    assert found["message"] == message
    assert found["code"] == code
    assert found["type"] == kind
    assert found["status"] == 422


def test_an_upstream_failure_of_the_server_is_a_server_error() -> None:
    (document,) = event_documents(render_upstream_error_event(500, b""))
    found = document["error"]
    assert isinstance(found, dict)
    assert found["type"] == "server_error"


def test_g1_a_heartbeat_is_a_comment_with_one_newline() -> None:
    assert HEARTBEAT == b": heartbeat\n"
