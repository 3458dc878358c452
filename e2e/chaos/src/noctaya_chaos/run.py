"""One fault after the other under load that never stops; then everything has to come to rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from noctaya_scenarios.scene import ZERO_SECONDS
from noctaya_scenarios.waiting import NotYet, until

from noctaya_chaos.catalogue import Fault, inflicted
from noctaya_chaos.field import COLD, WARM, Field
from noctaya_chaos.load import OK, MixedLoad, Outcome
from noctaya_chaos.timeline import Timeline
from noctaya_chaos.verdict import Sighting, violations

BEFORE: Final = 3.0
"""Seconds of load between a fault's end and the next one."""
STEADY_SECONDS: Final = 150.0
"""For everything to be as before: KEDA's own back-off after a lost scaler may take a minute."""
LOOK: Final = 0.5
KINDS: Final = ("json", "stream", "cold")
CALM: Final = 3.0
"""Seconds without a failure after which the warm service counts as steady."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One fault with what was seen of it."""

    fault: Fault
    seen: Sighting
    broken: tuple[str, ...]


class Watcher:
    """Looks at the busy service's replicas and the other one's last cold start; a context manager."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._over = threading.Event()
        self._seen: list[int] = []
        self._before = field.activation().get("pod")
        self._timelines: dict[str, Timeline] = {}
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seen(self) -> list[int]:
        """So far."""
        return list(self._seen)

    @property
    def timelines(self) -> list[Timeline]:
        """Of the cold starts that began since it looks, each as it was told last."""
        return list(self._timelines.values())

    def _watch(self) -> None:
        while not self._over.wait(LOOK):
            record = self._field.activation()
            if (pod := record.get("pod")) and pod != self._before:
                self._timelines[pod] = Timeline.of(record)
            replicas = self._field.backends()
            if replicas is not None:
                self._seen.append(replicas)


def examine(faults: Iterable[Fault], field: Field) -> Iterator[Verdict]:
    """Inflict faults one by one under load. Raises NotYet when the load itself does not come to run."""
    warm, cold = field.prepare()
    with MixedLoad(warm, cold, asleep=field.asleep) as load:
        begun = time.monotonic()
        if await_steady(load, field, since=begun) is None:
            raise NotYet(f"the load did not become steady within {STEADY_SECONDS:g} s: {load.since(begun)}")
        for fault in faults:
            time.sleep(BEFORE)
            yield suffer(fault, field, load)
    come_to_rest(field)


def suffer(fault: Fault, field: Field, load: MixedLoad) -> Verdict:
    """One fault, from its beginning until everything is as before."""
    begun = time.monotonic()
    with Watcher(field) as watcher:
        with inflicted(fault, field):
            earlier = {each.pod for each in watcher.timelines}
            time.sleep(fault.seconds)
            during = [each for each in watcher.timelines if each.pod not in earlier]
        ended = time.monotonic()
        steady = await_steady(load, field, since=ended)
        replicas, timelines = watcher.seen, watcher.timelines
    seen = Sighting(
        inflicted=begun,
        ended=ended,
        steady=steady,
        outcomes=load.since(begun),
        replicas=replicas,
        foreign=field.changed_objects_of_others(),
        timelines=timelines,
        during=during,
        complaints=field.complaints(),
    )
    return Verdict(fault=fault, seen=seen, broken=tuple(violations(fault.promise, seen)))


def await_steady(load: MixedLoad, field: Field, *, since: float) -> float | None:
    """When answers, streams and one whole cold start work that began after a moment; None if not in time."""

    def look() -> float:
        outcomes = [each for each in load.since(since) if each.begun >= since]
        return steady_at(outcomes, now=time.monotonic())

    try:
        return until(look, within=STEADY_SECONDS, what="everything is as before", every=LOOK)
    except NotYet:
        return None


def steady_at(outcomes: Iterable[Outcome], *, now: float) -> float:
    """The moment from which on everything worked; 0 as long as that can't be said.

    Answers and streams have to have worked without a failure for `CALM` seconds, and a cold start after the
    last failure.
    """
    known = sorted(outcomes, key=lambda each: each.ended)
    last_failure = max((each.ended for each in known if each.result != OK), default=0.0)
    good = [each for each in known if each.begun > last_failure]
    firsts = [min((each.ended for each in good if each.kind == kind), default=0.0) for kind in KINDS]
    if not all(firsts) or now - min(each.begun for each in good) < CALM:
        return 0.0
    return max(firsts)


def come_to_rest(field: Field) -> None:
    """Without load both services fall to zero and no demand is left. Raises NotYet."""
    for name in (WARM, COLD):
        until(lambda name=name: field.at_zero(name), within=ZERO_SECONDS, what=f"{name} at zero")  # type: ignore[misc]
        field.scene.await_phase("ScaledToZero", name, within=ZERO_SECONDS)
        until(lambda name=name: field.scene.demand(name) == 0, within=60, what=f"no demand of {name}")  # type: ignore[misc]
