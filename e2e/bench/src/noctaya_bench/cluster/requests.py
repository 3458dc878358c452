"""What the operator asked of the API server, by the server's own audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from noctaya_apiserver import Request

LEASES = "leases"


@dataclass(slots=True)
class Requests:
    """Requests of one user, apart from those that keep its Lease."""

    writes: Counter[str] = field(default_factory=Counter)
    """By verb and resource, such as `patch deployments`."""
    reads: Counter[str] = field(default_factory=Counter)
    """The same of get and list."""
    watches: int = 0
    lease: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that were no success, by code and what they were; counted above as well."""

    @property
    def written(self) -> int:
        return self.writes.total()

    @property
    def read(self) -> int:
        return self.reads.total()

    @property
    def besides_watches(self) -> int:
        """Everything, the Lease too."""
        return self.written + self.read + self.lease


def count_requests(requests: Iterable[Request], *, user: str) -> Requests:
    """Sort the requests of `user`."""
    found = Requests()
    for request in requests:
        if request.user != user:
            continue
        resource = "/".join(part for part in (request.resource, request.subresource) if part)
        what = f"{request.verb} {resource}"
        if request.code >= 400:
            found.refused[f"{request.code} {what}"] += 1
        if request.resource == LEASES:
            found.lease += request.verb != "watch"
        elif request.writes:
            found.writes[what] += 1
        elif request.verb == "watch":
            found.watches += 1
        else:
            found.reads[what] += 1
    return found


def most(counts: Counter[str], share_of: int, *, least: float = 0.01) -> str:
    """The counts per service, largest first, those below `least` left out."""
    parts = [f"{what} {count / share_of:.2f}" for what, count in counts.most_common()]
    shown = [part for part in parts if float(part.rsplit(" ", 1)[1]) >= least]
    return ", ".join(shown) or "none"
