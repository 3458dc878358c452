"""The API server's audit log: who asked for what. Bodies are left out, watches are logged when they begin."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, Panic]
rules:
  - level: None
    nonResourceURLs: ["/*"]
  - level: Metadata
    omitManagedFields: true
"""

READS: Final = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Request:
    """One request that was answered."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    at: str
    """When it came in: RFC 3339 with microseconds, so texts compare as times do."""
    group: str = ""
    """API group of the resource; empty for the core one."""

    @property
    def writes(self) -> bool:
        """Whether it was meant to change something."""
        return self.verb not in READS


class AuditLog:
    """Reads the log as it grows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._requests: list[Request] = []

    def requests(self) -> list[Request]:
        """Every request so far, in the order of their answers. The last line may be in the making."""
        with self._file.open("rb") as file:
            file.seek(self._read)
            *lines, _ = file.read().split(b"\n")
        self._read += sum(len(line) + 1 for line in lines)
        events = (json.loads(line) for line in lines)
        self._requests += [_request(event) for event in events if not _is_end_of_watch(event)]
        return list(self._requests)


def _is_end_of_watch(event: dict[str, Any]) -> bool:
    """A watch has two stages; its start is the one that is there while it lasts."""
    return (event["stage"], event["verb"]) == ("ResponseComplete", "watch")


def _request(event: dict[str, Any]) -> Request:
    target = event.get("objectRef") or {}
    return Request(
        user=event["user"]["username"],
        verb=event["verb"],
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        at=event["requestReceivedTimestamp"],
        group=target.get("apiGroup", ""),
    )
