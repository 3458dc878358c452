"""What the file of a service that can't be woken says: `prewarming`, `asleep` or `failed`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta


def notice(message: str, *, state: str | None = None, left: float | None = None) -> str:
    """The file's text; `left` is in how many seconds it ends, None when that isn't known."""
    told = {"message": message}
    if state is not None:
        told["state"] = state
    if left is not None:
        told["readyAt"] = (datetime.now(UTC) + timedelta(seconds=left)).isoformat()
    return json.dumps(told)
