"""Requests and answers, and how a range is cut out of a file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from noctaya_model_hub.content import Content, Inline

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as it came; `path` is still percent-encoded, header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def segments(self) -> list[str]:
        """Decoded parts of the path; an encoded slash stays inside its part."""
        return [unquote(part) for part in self.path.split("/")[1:]]

    @property
    def query(self) -> dict[str, str]:
        """Last value of each parameter."""
        parsed = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: values[-1] for name, values in parsed.items()}

    @property
    def bearer(self) -> str:
        """The Bearer token, or empty."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def base(self) -> str:
        """The URL under which the client knows this server."""
        return f"http://{self.headers.get('host', 'localhost')}"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer. `content` is the whole file, of which `start` to `end` is sent.

    `route` and `path` are what faults are matched against and what the log shows.
    """

    route: str
    path: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Content = field(default_factory=lambda: Inline(b""))
    start: int = 0
    end: int = 0


def text_reply(
    route: str, status: int, text: str, *, path: str = "", headers: Mapping[str, str] | None = None
) -> Reply:
    """A short answer."""
    data = Inline(text.encode())
    return Reply(route=route, path=path, status=status, headers=headers or {}, content=data, end=data.size)


def json_reply(
    route: str, value: object, *, status: int = 200, path: str = "", headers: Mapping[str, str] | None = None
) -> Reply:
    """An answer in JSON."""
    shown = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
    return text_reply(route, status, json.dumps(value), path=path, headers=shown)


def file_reply(
    route: str,
    path: str,
    content: Content,
    request: Request,
    *,
    etag: str,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A file or the range of it that was asked for (one range, as all hubs and stores do)."""
    shown = {
        "Content-Type": "application/octet-stream",
        "Accept-Ranges": "bytes",
        "ETag": f'"{etag}"',
        **(headers or {}),
    }
    wanted = _range_of(request, content.size, etag)
    if wanted is None:
        return Reply(route=route, path=path, headers=shown, content=content, end=content.size)
    start, end = wanted
    if start >= end:
        shown["Content-Range"] = f"bytes */{content.size}"
        return Reply(route=route, path=path, status=416, headers=shown)
    shown["Content-Range"] = f"bytes {start}-{end - 1}/{content.size}"
    return Reply(route=route, path=path, status=206, headers=shown, content=content, start=start, end=end)


def _range_of(request: Request, size: int, etag: str) -> tuple[int, int] | None:
    """Start and end of the range, (size, size) if it can't be satisfied, None if the whole file is wanted."""
    found = _RANGE.fullmatch(request.headers.get("range", ""))
    if found is None or found.groups() == ("", ""):
        return None
    condition = request.headers.get("if-range")
    if condition is not None and condition.strip('"') != etag:
        return None
    first, last = found.groups()
    if not first:
        return max(0, size - int(last)), size
    end = min(int(last) + 1, size) if last else size
    return (int(first), end) if int(first) < end else (size, size)
