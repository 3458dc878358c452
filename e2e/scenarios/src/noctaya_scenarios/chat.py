"""A client of an OpenAI-compatible endpoint that sees the bytes: heads, heartbeats, tokens, ends, and when.

Every request has a connection of its own, so that it goes where a new client would go. Streams run on threads
and are looked at while they run.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from noctaya_scenarios.waiting import until

CHAT: Final = "/v1/chat/completions"
PATIENCE: Final = 180.0
"""Seconds without a byte after which a client gives up: longer than any test waits for one."""
CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, whole. `seconds` is the time from sending to the last byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """`code` of an error in OpenAI's shape; blank for anything else."""
        try:
            return str(self.json()["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return ""

    @property
    def pod(self) -> str:
        """Pod of the stub that answered; blank when the gateway answered itself."""
        return self.headers.get("x-stub-pod", "")


@dataclass(slots=True)
class Seen:
    """What of a stream has arrived so far; times are time.monotonic()."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    sent_at: float = 0.0
    head_at: float = 0.0
    first_token_at: float = 0.0
    ended_at: float = 0.0
    heartbeats: int = 0
    tokens: int = 0
    text: str = ""
    errors: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False
    body: str = ""
    failure: str = ""

    @property
    def whole(self) -> bool:
        """200, tokens, [DONE], and nothing after it or instead of it."""
        return self.status == 200 and self.tokens > 0 and self.done and not self.errors and not self.failure


class Stream:
    """A streaming request that is under way on its own thread."""

    def __init__(self, client: Client, path: str, body: Mapping[str, Any]) -> None:
        self.seen = Seen()
        self._client, self._path, self._body = client, path, body
        self._connection = client.connection()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name=f"stream {path}", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def leave(self) -> None:
        """Close the connection, as a client that is no longer interested."""
        sock = until(lambda: self._socket, within=10, what="a connection")
        assert sock is not None
        sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def result(self, within: float) -> Seen:
        """Everything, once it has ended. AssertionError when it goes on."""
        self._thread.join(within)
        assert not self._thread.is_alive(), f"the stream still goes on after {within:g} s: {self.seen}"
        return self.seen

    def await_heartbeats(self, count: int = 1, *, within: float = 30.0) -> None:
        """Return when it is held: it got that many heartbeats."""
        until(
            lambda: self.seen.heartbeats >= count, within=within, what=f"{count} heartbeats", seen=self._now
        )

    def await_tokens(self, count: int = 1, *, within: float = 60.0) -> None:
        """Return when it flows: it got that many tokens."""
        until(lambda: self.seen.tokens >= count, within=within, what=f"{count} tokens", seen=self._now)

    def _now(self) -> Seen:
        return self.seen

    def _run(self) -> None:
        seen = self.seen
        try:
            self._connection.connect()
            self._socket = self._connection.sock  # http.client forgets it once the head is read
            seen.sent_at = time.monotonic()
            response = self._client.send(self._connection, "POST", self._path, self._body)
            seen.head_at = time.monotonic()
            seen.status = response.status
            seen.headers = _headers(response)
            rest = b""
            while data := response.read1(CHUNK):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._line(line.decode())
            seen.body += rest.decode()
        except (OSError, http.client.HTTPException) as error:
            seen.failure = f"{type(error).__name__}: {error}"
        finally:
            seen.ended_at = time.monotonic()
            self._connection.close()

    def _line(self, line: str) -> None:
        seen = self.seen
        if line == ": heartbeat":
            seen.heartbeats += 1
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
            if data == "[DONE]":
                seen.done = True
            else:
                self._event(json.loads(data))
        elif line:
            seen.body += line

    def _event(self, event: dict[str, Any]) -> None:
        seen = self.seen
        if "error" in event:
            seen.errors.append(event["error"])
            return
        for choice in event["choices"]:
            said = choice.get("delta", {}).get("content") or choice.get("text")
            if said:
                seen.first_token_at = seen.first_token_at or time.monotonic()
                seen.tokens += 1
                seen.text += said


class Client:
    """Talks to one endpoint.

    Args:
        host: address.
        port: port.
        headers: sent with every request, credentials for one.
    """

    def __init__(self, host: str, port: int, *, headers: Mapping[str, str] | None = None) -> None:
        self.host, self.port = host, port
        self._headers = dict(headers or {})

    def with_key(self, key: str) -> Client:
        """The same with an API key."""
        return Client(self.host, self.port, headers={**self._headers, "Authorization": f"Bearer {key}"})

    def stream(self, *, tokens: int = 10, **fields: Any) -> Stream:
        """Begin a chat stream of so many tokens."""
        return Stream(self, CHAT, {**_question(), "max_tokens": tokens, "stream": True, **fields})

    def ask(self, *, tokens: int = 1, within: float = PATIENCE) -> Answer:
        """A chat completion in one piece."""
        return self.post(CHAT, {**_question(), "max_tokens": tokens}, within=within)

    def get(self, path: str, *, within: float = 30.0) -> Answer:
        """GET."""
        return self._exchange("GET", path, None, within)

    def post(self, path: str, body: Mapping[str, Any], *, within: float = PATIENCE) -> Answer:
        """POST of JSON."""
        return self._exchange("POST", path, body, within)

    def connection(self, within: float = PATIENCE) -> http.client.HTTPConnection:
        """A new connection, not made yet."""
        return http.client.HTTPConnection(self.host, self.port, timeout=within)

    def send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
    ) -> http.client.HTTPResponse:
        """Send a request and read the head of its answer. Raises OSError, HTTPException."""
        headers = {"Connection": "close", **self._headers}
        content = None
        if body is not None:
            content = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body=content, headers=headers)
        return connection.getresponse()

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None, within: float) -> Answer:
        begun = time.monotonic()
        connection = self.connection(within)
        try:
            response = self.send(connection, method, path, body)
            content = response.read()
        finally:
            connection.close()
        return Answer(response.status, _headers(response), content, time.monotonic() - begun)


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _question() -> dict[str, Any]:
    return {"model": "stub", "messages": [{"role": "user", "content": "count"}]}
