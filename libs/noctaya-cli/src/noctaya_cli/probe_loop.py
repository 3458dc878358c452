"""When the probes of one run of a container are attempted.

Each probe has its own pace (`period` seconds after the previous attempt began, first one `initial_delay`
seconds after the start of the container), as in the kubelet. One thing is quicker than the kubelet: until
the replica is ready for the first time, startup and readiness are also *peeked* at every 100 ms between
those attempts. A peek can only succeed, a failed one isn't counted, so thresholds mean what they mean in a
cluster; but a model that is up after a second isn't noticed ten seconds later.
"""

import asyncio
from collections.abc import Callable, Mapping

from noctaya_cli.probe_attempt import Attempt, ProbeFailed
from noctaya_cli.probes import Exec, Health, Probe, ProbeKind

EARLY = 0.001
"""Seconds that an attempt may come before its time: the event loop wakes a sleeper up to its clock's
resolution early, and sleeping again for the rest could then go on without the clock moving."""
PEEK = 0.1
"""Seconds between uncounted attempts before the first readiness; exec probes are too costly for it."""


class ProbeLoop:
    """Probes one run of a container until `Health.failure` is set or the loop is cancelled."""

    def __init__(
        self,
        health: Health,
        *,
        port: int,
        env: Mapping[str, str],
        attempt: Attempt,
        changed: Callable[[], None],
    ) -> None:
        self._health = health
        self._port = port
        self._env = env
        self._attempt = attempt
        self._changed = changed
        self._failed = asyncio.Event()
        self._was_ready = health.ready

    async def run(self) -> str:
        """Probe until the container has to be ended; returns why. Never returns while all is well."""
        began = asyncio.get_running_loop().time()
        await self._watch(ProbeKind.STARTUP, began=began)
        async with asyncio.TaskGroup() as group:
            watchers = [
                group.create_task(self._watch(kind, began=began))
                for kind in (ProbeKind.READINESS, ProbeKind.LIVENESS)
            ]
            await self._failed.wait()
            for watcher in watchers:
                watcher.cancel()
        return self._health.failure or ""

    async def _watch(self, kind: ProbeKind, *, began: float) -> None:
        probe = self._health.probes.of(kind)
        if probe is None:
            return
        clock = asyncio.get_running_loop().time
        due = began + probe.initial_delay
        await asyncio.sleep(due - clock())
        while self._health.runs(kind):
            counted = clock() >= due - EARLY
            if counted:
                due = clock() + probe.period
            await self._attempt_once(kind, probe, counted=counted)
            pause = due - clock()
            if self._peeks(kind, probe):
                pause = min(PEEK, pause)
            if self._health.runs(kind):
                await asyncio.sleep(pause)

    async def _attempt_once(self, kind: ProbeKind, probe: Probe, *, counted: bool) -> None:
        success, reason = True, ""
        try:
            await self._attempt(probe, port=self._port, env=self._env)
        except ProbeFailed as failure:
            success, reason = False, str(failure)
        if not (counted or success):
            return
        before = (self._health.started, self._health.ready)
        self._health.result(kind, success=success, reason=reason)
        self._was_ready = self._was_ready or self._health.ready
        if self._health.failure is not None:
            self._failed.set()
        if before != (self._health.started, self._health.ready):
            self._changed()

    def _peeks(self, kind: ProbeKind, probe: Probe) -> bool:
        return (
            kind is not ProbeKind.LIVENESS
            and not self._was_ready
            and probe.success_threshold == 1
            and not isinstance(probe.action, Exec)
        )
