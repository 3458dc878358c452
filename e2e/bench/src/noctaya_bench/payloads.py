"""The bytes every peer sees: one chat request of 2 KB, one JSON reply of 1 KB, SSE events of 150 bytes.

They are built once, so that no load generator and no stub spends time on them while a proxy is measured.
"""

from __future__ import annotations

import json

API_KEY = "bench-key-0123456789abcdef0123456789abcdef"
CHAT_PATH = "/v1/chat/completions"
REQUEST_BYTES = 2048
REPLY_BYTES = 1024
EVENT_BYTES = 150
DONE_EVENT = b"data: [DONE]\n\n"
HEARTBEAT = b": heartbeat\n"


def chat_body(*, stream: bool, size: int = REQUEST_BYTES) -> bytes:
    """A chat completion request of exactly `size` bytes."""

    def render(filler: str) -> bytes:
        message = {"role": "user", "content": filler}
        return json.dumps({"model": "bench", "stream": stream, "messages": [message]}).encode()

    return render("x" * (size - len(render(""))))


def chat_reply() -> bytes:
    """A chat completion of exactly `REPLY_BYTES` bytes."""

    def render(filler: str) -> bytes:
        choice = {"index": 0, "message": {"role": "assistant", "content": filler}, "finish_reason": "stop"}
        return json.dumps({"id": "bench", "object": "chat.completion", "choices": [choice]}).encode()

    return render("y" * (REPLY_BYTES - len(render(""))))


def sse_event() -> bytes:
    """One chat completion chunk as an event of exactly `EVENT_BYTES` bytes, its blank line included."""

    def render(filler: str) -> bytes:
        choice = {"index": 0, "delta": {"content": filler}}
        chunk = json.dumps({"id": "bench", "object": "chat.completion.chunk", "choices": [choice]})
        return f"data: {chunk}\n\n".encode()

    return render("z" * (EVENT_BYTES - len(render(""))))


def request_bytes(path: str, body: bytes, *, method: str = "POST") -> bytes:
    """A whole HTTP/1.1 request with the key of the bench, ready to be written in one piece."""
    head = (
        f"{method} {path} HTTP/1.1\r\n"
        "Host: bench.local\r\n"
        "User-Agent: noctaya-bench\r\n"
        "Accept: */*\r\n"
        "Content-Type: application/json\r\n"
        f"Authorization: Bearer {API_KEY}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
