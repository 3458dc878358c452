"""One LLMService on this machine: its gateway, its embedded KEDA and its replicas, wired through public
contracts only.

- The gateway is a process; it learns backend addresses from a file and failed activations from another one.
- KEDA's part asks the gateway's ExternalScaler over gRPC.
- Replicas are processes; the gateway finds out by itself when one answers.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from noctaya_api.externalscaler.client import ExternalScalerClient
from noctaya_api.names import SCALER_METADATA_METRIC_NAME, SCALER_METADATA_TARGET_VALUE, SCALER_METRIC

from noctaya_cli.control_file import ControlFile
from noctaya_cli.events import EventKind, EventLog
from noctaya_cli.gateway_plan import plan_gateway
from noctaya_cli.gateway_stats import GatewayProbe, GatewayStats
from noctaya_cli.keda import Keda
from noctaya_cli.log_tail import bound_size, last_line
from noctaya_cli.machine import Machine
from noctaya_cli.plan import ServicePlan
from noctaya_cli.ports import LOOPBACK
from noctaya_cli.replica import Replica, ReplicaHost, ReplicaPhase
from noctaya_cli.replica_set import ReplicaSet
from noctaya_cli.scaling import Scaling
from noctaya_cli.status import Phase, ServiceStatus, classify_phase
from noctaya_cli.timeline import Activation, TimelineRecorder

STATS_INTERVAL = 0.5
DRAIN_SETTLE = 1.0
"""Seconds that a drain lasts at least: the gateway needs a moment to see that the replica left the list."""
Emit = Callable[[EventKind, str, Mapping[str, object]], None]
MOMENTS = {EventKind.REQUESTED: "requested", EventKind.FIRST_BYTE: "first_byte"}
"""Moments only the gateway knows; it calls them by these names in its metrics."""
GATEWAY_EVENTS = {
    EventKind.PROCESS_STARTED: EventKind.GATEWAY_STARTED,
    EventKind.REPLICA_EXITED: EventKind.GATEWAY_EXITED,
}


class GatewayFailed(Exception):
    """The gateway of a service ended before it ever served."""


class LocalService:
    """One service; `start`, then `run` until cancelled, then `stop`."""

    def __init__(
        self,
        plan: ServicePlan,
        *,
        host: str,
        port: int,
        machine: Machine,
        events: EventLog,
        timelines: TimelineRecorder,
    ) -> None:
        self.plan = plan
        self.url = f"http://{display_host(host)}:{port}/v1"
        self._machine = machine
        self._events = events
        self._timelines = timelines
        self._stats: GatewayStats | None = None
        self._serving = False
        self._activated = False
        self._moments: dict[str, float] = {}
        self._phase = Phase.PENDING
        self._endpoints: list[str] | None = None
        self._gateway_changed = asyncio.Event()
        self._stats_wanted = asyncio.Event()
        self._scaler_port = machine.ports.take()
        self._endpoints_file = ControlFile(
            machine.directory / f"{plan.name}.endpoints", failed=self._control_failed
        )
        self._failure_file = ControlFile(
            machine.directory / f"{plan.name}.failure", failed=self._control_failed
        )
        self._probe = GatewayProbe(f"http://{display_host(host)}:{port}")
        self._gateway = Replica(
            plan_gateway(
                plan,
                program=machine.gateway_program,
                listen=(host, port),
                scaler_port=self._scaler_port,
                endpoints_file=self._endpoints_file.path,
                failure_file=self._failure_file.path,
                overrides=machine.gateway_overrides,
            ),
            name=f"{plan.name}-gateway",
            port=port,
            host=self._replica_host(self._gateway_event, lambda *_: None),
            changed=self._gateway_changed.set,
        )
        self._replicas = ReplicaSet(
            plan.container,
            service=plan.name,
            host=self._replica_host(self._replica_event, self._doomed),
            ports=machine.ports,
            changed=self._changed,
        )
        self._gateway_task: asyncio.Task[None] | None = None

    @property
    def logs(self) -> dict[str, Path]:
        """Log file of every process that is running, by its name."""
        return {replica.name: replica.log for replica in (self._gateway, *self._replicas.replicas)}

    async def start(self) -> None:
        """Start the gateway and wait until it serves; raises GatewayFailed."""
        self._publish_endpoints()
        self._gateway_task = asyncio.create_task(self._gateway.run(), name=self._gateway.name)
        while self._gateway.phase is not ReplicaPhase.READY:
            self._gateway_changed.clear()
            await self._gateway_changed.wait()
            if self._gateway.restarts > 0:
                raise GatewayFailed(
                    f"{self.plan.name}: the gateway ended at its start ({self._gateway.reason}): "
                    f"{last_line(self._gateway.log) or 'it printed nothing'}"
                )
        self._serving = True
        self._emit(EventKind.SERVICE_STARTED, url=self.url, runtime=self.plan.runtime, model=self.plan.model)
        for note in self.plan.notes:
            self._emit(EventKind.NOTE, text=note)
        self._changed()

    async def run(self) -> None:
        """Scale and watch until cancelled."""
        trigger = {
            SCALER_METADATA_METRIC_NAME: SCALER_METRIC,
            SCALER_METADATA_TARGET_VALUE: str(self.plan.scaling.target),
        }
        client = ExternalScalerClient(
            f"{LOOPBACK}:{self._scaler_port}",
            metadata=trigger,
            name=self.plan.name,
            namespace=self.plan.namespace,
        )
        async with client, asyncio.TaskGroup() as group:
            keda = Keda(
                client, scaling=Scaling(self.plan.scaling), scale=self._replicas.scale, emit=self._keda_event
            )
            group.create_task(keda.run(), name=f"{self.plan.name} keda")
            group.create_task(self._watch_gateway(), name=f"{self.plan.name} stats")

    async def stop_gateway(self) -> None:
        """Drain and end the gateway; replicas go on serving what is in flight."""
        if self._gateway_task is not None:
            self._gateway.stop()
            await self._gateway_task

    async def stop_replicas(self) -> None:
        """End all replicas; call it when nothing scales them any more."""
        await self._replicas.close()
        await self._probe.close()
        self._emit(EventKind.SERVICE_STOPPED)

    def kill(self) -> None:
        """SIGKILL everything; the two stop methods still have to be awaited."""
        self._gateway.kill()
        self._replicas.kill()

    def status(self) -> ServiceStatus:
        """A snapshot for people."""
        live = self._replicas.live
        phase, reason = classify_phase(live, minimum=self.plan.scaling.minimum)
        stats = self._stats
        return ServiceStatus(
            name=self.plan.name,
            url=self.url,
            model=self.plan.model,
            runtime=self.plan.runtime,
            phase=phase,
            reason=reason,
            ready=self._replicas.ready,
            replicas=len(live),
            maximum=self.plan.scaling.maximum,
            leaving=len(self._replicas.replicas) - len(live),
            demand=stats.demand if stats is not None else None,
            pending=stats.pending if stats is not None else None,
            activation=self._activation,
        )

    @property
    def _activation(self) -> Activation | None:
        return self._timelines.last(self.plan.name)

    def _replica_host(self, emit: Emit, doomed: Callable[[str, str], None]) -> ReplicaHost:
        return ReplicaHost(
            spawn=self._machine.spawn,
            attempt=self._machine.attempt,
            environment=self._machine.environment,
            log_directory=self._machine.directory,
            drained=self._drained,
            emit=emit,
            doomed=doomed,
        )

    def _emit(self, kind: EventKind, **details: object) -> None:
        self._events.emit(kind, details, service=self.plan.name)

    def _replica_event(self, kind: EventKind, replica: str, details: Mapping[str, object]) -> None:
        self._events.emit(kind, details, service=self.plan.name, replica=replica)

    def _gateway_event(self, kind: EventKind, replica: str, details: Mapping[str, object]) -> None:
        if kind is EventKind.REPLICA_EXITED and not self._serving:
            self._gateway.stop()  # what ends at its start is wrong, not unlucky
        elif kind in GATEWAY_EVENTS:
            self._events.emit(GATEWAY_EVENTS[kind], details, service=self.plan.name, replica=replica)

    def _keda_event(self, kind: EventKind, **details: object) -> None:
        self._emit(kind, **details)
        if kind is EventKind.ACTIVATED:
            self._activated = True
            self._stats_wanted.set()

    def _changed(self) -> None:
        """Something about the replicas changed: tell the gateway and the phase's readers."""
        self._publish_endpoints()
        phase, reason = classify_phase(self._replicas.live, minimum=self.plan.scaling.minimum)
        if phase is not self._phase and not self._gateway.stopping:
            self._phase = phase
            self._emit(EventKind.PHASE, phase=phase, reason=reason)

    def _publish_endpoints(self) -> None:
        endpoints = self._replicas.endpoints
        if endpoints != self._endpoints:
            self._endpoints = endpoints
            self._endpoints_file.tell("".join(f"{endpoint}\n" for endpoint in endpoints))

    def _doomed(self, replica: str, reason: str) -> None:
        """A replica can't come up: held requests are told now instead of at their timeout."""
        said = last_line(self._machine.directory / f"{replica}.log")
        reason = f"{replica}: {reason}; it said: {said}" if said else f"{replica}: {reason}"
        self._failure_file.tell(reason + "\n")
        self._emit(EventKind.ACTIVATION_DOOMED, reason=reason)

    def _control_failed(self, error: OSError) -> None:
        self._emit(
            EventKind.NOTE,
            text=f"can't tell the gateway about its replicas, trying again: {error.strerror or error} "
            f"({self._machine.directory})",
        )

    async def _watch_gateway(self) -> None:
        while True:
            stats = await self._probe.stats()
            if stats is not None:
                self._report(stats)
            self._stats = stats
            for log in self.logs.values():
                await asyncio.to_thread(bound_size, log)
            self._endpoints_file.retry()
            self._failure_file.retry()
            self._stats_wanted.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STATS_INTERVAL):
                    await self._stats_wanted.wait()

    def _report(self, stats: GatewayStats) -> None:
        """Publish what is new since the last look."""
        before = self._stats
        if before is None or (stats.demand, stats.pending) != (before.demand, before.pending):
            self._emit(EventKind.DEMAND, demand=stats.demand, pending=stats.pending)
        if not self._activated:
            return
        for kind, name in MOMENTS.items():
            wall = stats.moments.get(name)
            if wall is not None and wall != self._moments.get(name):
                self._moments[name] = wall
                self._events.emit(kind, service=self.plan.name, wall=wall)

    async def _drained(self) -> None:
        """Returns when the gateway has no request any more, or is gone itself."""
        if self._gateway.stopping:
            return
        await asyncio.sleep(DRAIN_SETTLE)
        while True:
            stats = await self._probe.stats()
            if stats is None or stats.pending == 0:
                return
            await asyncio.sleep(STATS_INTERVAL)


def display_host(host: str) -> str:
    """How a listen address is written in a URL that works on this machine."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return LOOPBACK
    return f"[{host}]" if ":" in host else host
