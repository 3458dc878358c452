"""What can be made to go wrong, by request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from noctaya_operator.kube.resources import Resource

from fake_apiserver.protocol import Target


@dataclass
class Fault:
    """One planned fault (fail, hang, break or delay) for `left` more matching requests."""

    kind: str
    left: float
    matches: Callable[[Target], bool]
    status: int = 500
    reason: str = "InternalError"
    message: str = "injected"
    retry_after: float | None = None
    seconds: float = 0.0


@dataclass
class Faults:
    """Planned faults, oldest first. `times` defaults to once; use `math.inf` for until `clear`."""

    planned: list[Fault] = field(default_factory=list)
    cuts: dict[Resource | None, float] = field(default_factory=dict)

    def fail(
        self,
        *,
        status: int = 500,
        times: float = 1,
        reason: str = "InternalError",
        message: str = "injected",
        retry_after: float | None = None,
        verb: str | None = None,
        resource: Resource | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> None:
        """Answer matching requests with this status."""
        matches = _matcher(verb, resource, name, subresource)
        self.planned.append(Fault("fail", times, matches, status, reason, message, retry_after))

    def hang(
        self,
        *,
        times: float = 1,
        verb: str | None = None,
        resource: Resource | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> None:
        """Never answer matching requests; the connection stays open."""
        self.planned.append(Fault("hang", times, _matcher(verb, resource, name, subresource)))

    def drop(
        self,
        *,
        times: float = 1,
        verb: str | None = None,
        resource: Resource | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> None:
        """Break the connection of matching requests before anything is done."""
        self.planned.append(Fault("break", times, _matcher(verb, resource, name, subresource)))

    def delay(
        self,
        seconds: float,
        *,
        times: float = 1,
        verb: str | None = None,
        resource: Resource | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> None:
        """Do matching requests only after a while."""
        self.planned.append(
            Fault("delay", times, _matcher(verb, resource, name, subresource), seconds=seconds)
        )

    def cut_watches(self, resource: Resource | None = None, *, times: float = 1) -> None:
        """Break a watch of the kind (None: any) off in the middle of its next event."""
        self.cuts[resource] = self.cuts.get(resource, 0) + times

    def clear(self) -> None:
        """Nothing goes wrong any more; what hangs goes on hanging."""
        self.planned.clear()
        self.cuts.clear()

    def take(self, target: Target) -> Fault | None:
        """The fault for this request, used up by one."""
        for fault in self.planned:
            if fault.left > 0 and fault.matches(target):
                fault.left -= 1
                return fault
        return None

    def take_cut(self, resource: Resource) -> bool:
        """Whether to break this watch off now."""
        for kind in (resource, None):
            if self.cuts.get(kind, 0) > 0:
                self.cuts[kind] -= 1
                return True
        return False


def _matcher(
    verb: str | None, resource: Resource | None, name: str | None, subresource: str | None
) -> Callable[[Target], bool]:
    def matches(target: Target) -> bool:
        return (
            (verb is None or target.verb == verb)
            and (resource is None or target.resource == resource)
            and (name is None or target.name == name)
            and (subresource is None or target.subresource == subresource)
        )

    return matches
