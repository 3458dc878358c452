"""Startup, readiness and liveness probes: what they are and what their results mean. Pure.

Semantics and defaults are those of Kubernetes: until the startup probe has succeeded the others don't run;
a startup or liveness probe that fails `failure_threshold` times in a row ends the container; readiness only
says whether the replica is ready. How an attempt is made is in probe_attempt.py, when one is made in
probe_loop.py.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class ProbeKind(StrEnum):
    """The three probes of a container."""

    STARTUP = "startup"
    READINESS = "readiness"
    LIVENESS = "liveness"


@dataclass(frozen=True, slots=True)
class HttpGet:
    """Success is a status of 200..399. `port` None means the replica's own port."""

    path: str = "/"
    port: int | None = None
    host: str = ""
    scheme: str = "HTTP"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """Success is an accepted connection. `port` None means the replica's own port."""

    port: int | None = None
    host: str = ""


@dataclass(frozen=True, slots=True)
class Exec:
    """Success is exit code 0."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GrpcHealth:
    """Success is SERVING from the standard health service. `port` None means the replica's own port."""

    port: int | None = None
    service: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe with Kubernetes' defaults. Times are seconds; thresholds count results in a row."""

    action: HttpGet | TcpSocket | Exec | GrpcHealth
    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    success_threshold: int = 1
    failure_threshold: int = 3


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of one container; None where there is none."""

    startup: Probe | None = None
    readiness: Probe | None = None
    liveness: Probe | None = None

    def of(self, kind: ProbeKind) -> Probe | None:
        """The probe of that kind."""
        return {
            ProbeKind.STARTUP: self.startup,
            ProbeKind.READINESS: self.readiness,
            ProbeKind.LIVENESS: self.liveness,
        }[kind]


@dataclass(slots=True)
class Streak:
    """Equal results in a row."""

    success: bool = False
    length: int = 0

    def add(self, success: bool) -> int:
        """Count one more result; returns the length of the current streak."""
        self.length = self.length + 1 if success == self.success else 1
        self.success = success
        return self.length


@dataclass(slots=True)
class Health:
    """What the probes have said about one run of a container so far.

    `started`: the startup probe has succeeded (or there is none). `ready`: it may get traffic. `failure`:
    why it must be ended, None while it needn't be.
    """

    probes: Probes
    started: bool = False
    ready: bool = False
    failure: str | None = None
    _streaks: dict[ProbeKind, Streak] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.probes.startup is None:
            self._start()

    def runs(self, kind: ProbeKind) -> bool:
        """Should this probe be attempted now?"""
        if self.failure is not None or self.probes.of(kind) is None:
            return False
        return self.started != (kind is ProbeKind.STARTUP)

    def result(self, kind: ProbeKind, *, success: bool, reason: str = "") -> None:
        """Take one result into account. Results of a probe that shouldn't run any more change nothing."""
        probe = self.probes.of(kind)
        if probe is None or not self.runs(kind):
            return
        count = self._streaks.setdefault(kind, Streak()).add(success)
        if count < (probe.success_threshold if success else probe.failure_threshold):
            return
        if kind is ProbeKind.READINESS:
            self.ready = success
        elif success:
            self._start()
        else:
            self.ready = False
            self.failure = (
                f"{kind} probe failed {count} times: {reason}" if reason else f"{kind} probe failed"
            )

    def _start(self) -> None:
        if not self.started:
            self.started = True
            self.ready = self.probes.readiness is None
