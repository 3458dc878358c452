from __future__ import annotations

from noctaya_gateway.cors import Cors

APP = b"https://app.example.com"
PREFLIGHT = [
    (b"Origin", APP),
    (b"Access-Control-Request-Method", b"POST"),
    (b"Access-Control-Request-Headers", b"authorization, x-stainless-os"),
]


def test_g3_a_preflight_of_an_allowed_origin_is_granted_what_it_asks() -> None:
    reply = Cors(["https://app.example.com"]).preflight(b"OPTIONS", PREFLIGHT)
    assert reply is not None
    assert reply.status == 204
    assert reply.body == b""
    headers = dict(reply.headers)
    assert headers[b"access-control-allow-origin"] == APP
    assert headers[b"access-control-allow-headers"] == b"authorization, x-stainless-os"
    assert b"POST" in headers[b"access-control-allow-methods"]
    assert b"Origin" in headers[b"vary"]


def test_a_preflight_of_another_origin_gets_an_answer_without_permission() -> None:
    reply = Cors(["https://other.example.com"]).preflight(b"OPTIONS", PREFLIGHT)
    assert reply is not None
    assert b"access-control-allow-origin" not in dict(reply.headers)


def test_only_a_preflight_is_answered() -> None:
    cors = Cors(["*"])
    assert cors.preflight(b"POST", PREFLIGHT) is None
    assert cors.preflight(b"OPTIONS", [(b"origin", APP)]) is None
    assert cors.preflight(b"OPTIONS", []) is None


def test_cors_that_is_off_answers_and_adds_nothing() -> None:
    cors = Cors([])
    assert not cors.enabled
    assert cors.preflight(b"OPTIONS", PREFLIGHT) is None
    assert cors.headers(PREFLIGHT) == ()


def test_a_response_names_the_origin_it_is_for() -> None:
    headers = dict(Cors(["https://app.example.com"]).headers([(b"Origin", APP)]))
    assert headers[b"access-control-allow-origin"] == APP
    assert headers[b"vary"] == b"Origin"
    assert b"x-request-id" in headers[b"access-control-expose-headers"]


def test_a_star_allows_every_origin() -> None:
    headers = dict(Cors(["*"]).headers([(b"origin", b"null")]))
    assert headers[b"access-control-allow-origin"] == b"*"


def test_a_response_to_another_origin_gives_no_permission_but_varies() -> None:
    assert Cors(["https://a.b"]).headers([(b"origin", APP)]) == ((b"vary", b"Origin"),)
    assert Cors(["https://a.b"]).headers([(b"accept", b"*/*")]) == ()
