"""Faults as data: which requests they hit, and what happens to those.

A fault is matched before the request is answered. The first fault that matches wins; its counter is its own,
so "the second and third call for this file" is said with `calls={2, 3}`.
"""

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, kw_only=True)
class Match:
    """Which requests a fault hits.

    Attributes:
        route: `info`, `tree`, `resolve` (answers with the file or a redirect) and `cache` (small files, after
            the redirect) of Hugging Face; `ms-files`, `ms-revisions`, `ms-info`, `ms-file` of ModelScope;
            `cdn` (large files of both, on another host); `s3-list`, `s3-get`; `oci-manifest`,
            `oci-blob`; `*` is any.
        path: pattern of the file's path.
        method: `GET`, `HEAD`, or empty for any.
        calls: numbers of the matching calls that are hit, from 1; empty: all of them.
        from_byte: only requests whose range begins at this byte or later.
    """

    route: str = "*"
    path: str = "*"
    method: str = ""
    calls: frozenset[int] | set[int] = frozenset()
    from_byte: int = 0


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What happens to a request that is hit. Effects on the body can be combined.

    Attributes:
        status: answer with this status instead of the file.
        headers: added to the answer, replacing those of the same name; an empty value removes one.
        body: the body of such a status.
        redirect: answer 302 to this URL.
        delay: seconds until the head is sent.
        stall_after: body bytes after which nothing more comes while the connection stays open.
        cut_after: body bytes after which the connection is closed.
        reset: cut with a TCP reset instead of an ordinary close.
        bytes_per_second: the body comes at this rate.
        flip_at: position in the file of a byte that is sent inverted.
        announce: added to the announced Content-Length (-1: the last byte isn't sent, +1: one is missing).
        keep_whole: the range asked for is ignored; the whole file is sent with status 200.
        then: called with the hub's state before the answer is computed, to move a revision for instance.
    """

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    redirect: str = ""
    delay: float = 0
    stall_after: int | None = None
    cut_after: int | None = None
    reset: bool = False
    bytes_per_second: float = 0
    flip_at: int | None = None
    announce: int = 0
    keep_whole: bool = False
    then: Callable[[], object] | None = None


NO_EFFECT = Effect()


def too_many(*, retry_after: str = "1", status: int = 429) -> Effect:
    """The hub asks for patience."""
    headers = (("Retry-After", retry_after),) if retry_after else ()
    return Effect(status=status, headers=headers, body=b'{"error":"slow down"}')


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way in which the hub misbehaves."""

    on: Match
    effect: Effect


@dataclass
class Faults:
    """The faults in force, in order of precedence."""

    active: list[tuple[Fault, list[int]]] = field(default_factory=list)
    cleared: int = 0
    """How often the faults were cleared: an answer under way that began slowly goes on at full rate then."""

    def add(self, on: Match, effect: Effect) -> Fault:
        """Put a fault in force."""
        fault = Fault(on=on, effect=effect)
        self.active.append((fault, [0]))
        return fault

    def clear(self) -> None:
        """The hub behaves from now on."""
        self.active.clear()
        self.cleared += 1

    def hits(self, fault: Fault) -> int:
        """How many requests matched a fault, whether they were among its calls or not."""
        return next((count[0] for one, count in self.active if one is fault), 0)

    def effect(self, *, route: str, path: str, method: str, start: int) -> Effect:
        """What happens to this request; counts it."""
        for fault, count in self.active:
            on = fault.on
            if on.method not in {"", method} or start < on.from_byte:
                continue
            if not (fnmatch.fnmatchcase(route, on.route) and fnmatch.fnmatchcase(path, on.path)):
                continue
            count[0] += 1
            if not on.calls or count[0] in on.calls:
                return replace(fault.effect)
        return NO_EFFECT
