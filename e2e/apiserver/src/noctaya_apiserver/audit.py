"""The API server's audit log: who asked for what. Bodies are left out, watches are logged when they begin."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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

    @property
    def writes(self) -> bool:
        """Whether it was meant to change something."""
        return self.verb not in READS


def read_audit(log: Path) -> list[Request]:
    """Every request of the log, in the order of their answers. The last line may be in the making."""
    found = []
    for line in log.read_bytes().split(b"\n")[:-1]:
        event = json.loads(line)
        # A watch has two stages; its start is the one that is there while it lasts.
        if event["stage"] == "ResponseComplete" and event["verb"] == "watch":
            continue
        target = event.get("objectRef") or {}
        found.append(
            Request(
                user=event["user"]["username"],
                verb=event["verb"],
                resource=target.get("resource", ""),
                subresource=target.get("subresource", ""),
                namespace=target.get("namespace", ""),
                name=target.get("name", ""),
                code=(event.get("responseStatus") or {}).get("code", 0),
                at=event["requestReceivedTimestamp"],
            )
        )
    return found
