"""Requests and answers without HTTP, so the same server answers over sockets and inside a looptime test."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from noctaya_operator.kube.resources import Resource

Object = dict[str, Any]

WRITES = frozenset({"create", "update", "patch", "delete"})


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    content_type: str = "application/json"
    body: bytes = b""
    authorization: str | None = None


@dataclass(frozen=True)
class Target:
    """What a request is about, from its method and path."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str


@dataclass(frozen=True)
class Recorded:
    """One request as tests look at it; `status` is 0 when it was never answered."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    status: int
    body: Object = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True)
class Stream:
    """A watch: lines as they come. A piece of None means: break the connection off here."""

    pieces: AsyncGenerator[bytes | None, None]


def answer(status: int, obj: Object) -> Answer:
    """An object as an answer."""
    return Answer(status, json.dumps(obj).encode())


def status_object(code: int, reason: str, message: str, **details: Any) -> Object:
    """A failure `Status`."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


class Refused(Exception):
    """A failure to answer with."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.body = status_object(code, reason, message, **details)


def unknown_path() -> Answer:
    """What the real server says to a path nobody serves; no Status object."""
    return Answer(404, b"404 page not found\n", content_type="text/plain")
