"""Server-sent events, read as strict clients read them."""

from __future__ import annotations

import json
from typing import Any

HEARTBEAT = b": heartbeat\n"


def split_heartbeats(stream: bytes) -> tuple[int, bytes]:
    """How many heartbeats lead the stream, and what follows them."""
    count = 0
    while stream.startswith(HEARTBEAT, count * len(HEARTBEAT)):
        count += 1
    return count, stream[count * len(HEARTBEAT) :]


def data_of(stream: bytes) -> list[bytes]:
    """The data of every dispatched event; a tail without its blank line is an assertion error."""
    assert stream.endswith(b"\n\n"), f"last event is not closed: {stream[-80:]!r}"
    events = []
    for block in stream[:-2].split(b"\n\n"):
        lines = [line for line in block.split(b"\n") if not line.startswith(b":")]
        data = [line[5:].lstrip(b" ") for line in lines if line.startswith(b"data:")]
        if data:
            events.append(b"\n".join(data))
    return events


def error_tail(stream: bytes) -> dict[str, Any]:
    """The error object of a stream that ends with an error event and [DONE]."""
    events = data_of(stream)
    assert events[-1] == b"[DONE]", events
    value = json.loads(events[-2])
    assert set(value) == {"error"}, value
    error: dict[str, Any] = value["error"]
    assert {"message", "type", "param", "code"} <= set(error), error
    assert error["message"]
    return error
