"""What the stub is doing, shown by `/metrics`, and how a test told it to behave with `POST /control`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noctaya_model_stub.settings import SettingError, Settings, delay, whole_number


@dataclass(kw_only=True, slots=True)
class Behaviour:
    """What `POST /control` can change. `healthy` None leaves health to the startup delay; `fail_status` is
    the status of every answer, 0 for none; `cut_after` cuts streams after so many tokens, 0 never."""

    healthy: bool | None = None
    token_delay: float
    token_count: int
    fail_status: int = 0
    cut_after: int = 0
    waiting: int = 0
    kv_cache: float = 0.0


class State:
    """State of one stub; `now` is a monotonic clock in seconds."""

    def __init__(self, settings: Settings, *, now: float) -> None:
        self.settings = settings
        self.behaviour = Behaviour(token_delay=settings.token_delay, token_count=settings.token_count)
        self.running = 0
        self.peak = 0
        self.completed = 0
        self.broken = 0
        self.departures = 0
        self.traceparent = ""
        self._loaded_at = now + settings.startup_delay

    def healthy(self, now: float) -> bool:
        """Whether `/health` says 200."""
        told = self.behaviour.healthy
        return now >= self._loaded_at if told is None else told

    def begin(self, *, traceparent: str = "") -> None:
        """A completion begins, in the trace that its request named if it named one."""
        self.traceparent = traceparent
        self.running += 1
        self.peak = max(self.peak, self.running)

    def end(self, *, complete: bool) -> None:
        """A completion is over."""
        self.running -= 1
        self.completed += complete
        self.broken += not complete

    def control(self, wanted: Mapping[str, Any]) -> None:
        """Change what is named, all of it or nothing. Raises SettingError."""
        readers = {
            "healthy": _flag,
            "tokenDelay": delay,
            "tokenCount": lambda name, value: whole_number(name, value, lowest=1),
            "failStatus": _status,
            "cutAfter": lambda name, value: whole_number(name, value, lowest=0),
            "waiting": lambda name, value: whole_number(name, value, lowest=0),
            "kvCache": _share,
        }
        unknown = sorted(wanted.keys() - readers.keys())
        if unknown:
            raise SettingError(f"{unknown[0]} is not known; known are {', '.join(sorted(readers))}")
        for name, value in {name: readers[name](name, value) for name, value in wanted.items()}.items():
            setattr(self.behaviour, _ATTRIBUTES[name], value)

    def view(self, now: float) -> dict[str, Any]:
        """What `POST /control` answers."""
        return {
            "pod": self.settings.pod,
            "healthy": self.healthy(now),
            "running": self.running,
            "peak": self.peak,
            "completed": self.completed,
            "broken": self.broken,
            "departures": self.departures,
            "traceparent": self.traceparent,
        }

    def metrics(self) -> str:
        """The Prometheus text of `/metrics`, with vLLM's names for what vLLM has too."""
        label = f'model_name="{self.settings.model}"'
        gauges = {
            "vllm:num_requests_running": self.running,
            "vllm:num_requests_waiting": self.behaviour.waiting,
            "vllm:kv_cache_usage_perc": self.behaviour.kv_cache,
            "stub_peak_requests": self.peak,
        }
        counters = {
            "stub_completed_requests_total": self.completed,
            "stub_broken_requests_total": self.broken,
        }
        lines = []
        for kind, values in (("gauge", gauges), ("counter", counters)):
            for name, value in values.items():
                lines += [f"# TYPE {name} {kind}", f"{name}{{{label}}} {value}"]
        return "\n".join(lines) + "\n"


_ATTRIBUTES = {
    "healthy": "healthy",
    "tokenDelay": "token_delay",
    "tokenCount": "token_count",
    "failStatus": "fail_status",
    "cutAfter": "cut_after",
    "waiting": "waiting",
    "kvCache": "kv_cache",
}


def _flag(name: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise SettingError(f"{name} must be true, false or null, not {value!r}")


def _status(name: str, value: object) -> int:
    if value == 0 and not isinstance(value, bool):
        return 0
    return whole_number(name, value, lowest=400, highest=599)


def _share(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise SettingError(f"{name} must be a number from 0 to 1, not {value!r}")
