"""What the prewarm agent says of a download: while it runs over HTTP, at its end in its termination message.

Both are JSON with the same names. The agent has no credentials of the cluster; what it says is read, never
trusted: a wrong type is as good as silence, texts are cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from noctaya_api import names

from noctaya_operator.kube.objects import Object

TEXT_LIMIT: Final = 512
"""Characters of a text that are passed on."""
_COUNT_LIMIT: Final = 2**63 - 1
_COUNTS: Final = {
    "bytesDone": "bytes_done",
    "bytesTotal": "bytes_total",
    "bytesPerSecond": "bytes_per_second",
    "etaSeconds": "eta_seconds",
    "attempt": "attempt",
    "code": "code",
}
_TEXTS: Final = {
    "currentFile": "current_file",
    "message": "message",
    "reason": "reason",
    "revision": "revision",
    "digest": "digest",
}
BEFORE: Final = (
    names.CONTAINER_REGISTRY_AUTH,
    names.CONTAINER_FETCH_OCI_MANIFEST,
    names.CONTAINER_PULL_OCI_MODEL,
)
"""Containers that end before the agent's own begins."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One thing the agent said; what it did not say is None or empty."""

    bytes_done: int | None = None
    bytes_total: int | None = None
    bytes_per_second: int | None = None
    eta_seconds: int | None = None
    attempt: int | None = None
    code: int | None = None
    current_file: str = ""
    message: str = ""
    reason: str = ""
    revision: str = ""
    digest: str = ""

    @property
    def failure(self) -> bool:
        """Whether it tells of an attempt that failed."""
        return bool(self.code)


def parse_report(said: object) -> Report | None:
    """A report from its JSON text; None for anything else."""
    try:
        values = json.loads(said) if isinstance(said, str | bytes) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    found: dict[str, Any] = {field: _count(values.get(name)) for name, field in _COUNTS.items()}
    found |= {field: _text(values.get(name)) for name, field in _TEXTS.items()}
    return Report(**found)


def last_report(pods: Sequence[Object]) -> Report | None:
    """The newest of what containers of a Job's Pods left when they ended."""
    left = sorted((found for pod in pods for found in _left(pod)), key=lambda found: found[0])
    return left[-1][1] if left else None


def _left(pod: Object) -> Iterator[tuple[str, Report]]:
    status = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses"):
        entries = status.get(field)
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, Mapping):
                continue
            for state in (entry.get("lastState"), entry.get("state")):
                ended = state.get("terminated") if isinstance(state, Mapping) else None
                if isinstance(ended, Mapping) and (report := _of_container(entry.get("name"), ended)):
                    yield str(ended.get("finishedAt") or ""), report


def _of_container(name: object, ended: Mapping[str, Any]) -> Report | None:
    code, said = ended.get("exitCode"), ended.get("message")
    if name == names.CONTAINER_PREWARM:
        return parse_report(said)
    if name not in BEFORE or not isinstance(code, int) or code == 0:
        return None
    # The registry client says in the last lines of its log what went wrong.
    told = parse_report(said)
    if told is not None:
        return told
    lines = [line.strip() for line in str(said or "").splitlines() if line.strip()]
    why = lines[-1] if lines else "it says nothing"
    return Report(code=code, message=f"{name}: {why}"[:TEXT_LIMIT])


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _COUNT_LIMIT:
        return None
    return int(value)


def _text(value: object) -> str:
    # A lone surrogate, which JSON can escape, could never be written to the API server.
    return value[:TEXT_LIMIT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
