"""The faults: what is done, what Noctaya promises meanwhile, and how it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from noctaya_scenarios import faults
from noctaya_scenarios.release import NAMESPACE, OPERATOR_LABELS

from noctaya_chaos import breaking, filling, skewing
from noctaya_chaos.breaking import Inflict
from noctaya_chaos.field import Field
from noctaya_chaos.load import CUT, UNREACHED
from noctaya_chaos.verdict import Promise

HELD: Final = 30.0
"""Seconds that a warm answer may take while its backend is made anew: it is held like a cold one."""
NOTICED: Final = 8.0
"""Seconds until no new connection goes to a gateway that died: kubelet, EndpointSlice, kube-proxy."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to break things.

    Attributes:
        name: short, for the command line.
        done: what is done, for the table.
        expected: what is promised meanwhile, for the table.
        promise: the same for the verdict.
        inflict: a generator: does it, yields once, undoes it.
        seconds: how long it lasts.
    """

    name: str
    done: str
    expected: str
    promise: Promise
    inflict: Inflict
    seconds: float = 15.0


ALL_WELL: Final = Promise()
TOLD: Final = Promise(told=True)
INTERRUPTED: Final = frozenset({"error event backend_interrupted", "status 502 backend_interrupted"})
NOTHING_FAILS: Final = "nothing fails"
IN_ORDER: Final = "nothing fails; the timeline of a cold start stays in order, whole and as long as it was"

FAULTS: Final = (
    Fault(
        name="gateway-killed",
        done="one of two gateways: SIGKILL",
        expected=f"what it carried is cut; nothing else, and nothing after {NOTICED:g} s",
        promise=Promise(results=frozenset({UNREACHED, CUT}), within=NOTICED),
        inflict=breaking.killed("gateway"),
    ),
    Fault(
        name="scaler-killed",
        done="the aggregate scaler: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=breaking.killed("scaler"),
    ),
    Fault(
        name="operator-killed",
        done="the operator that leads: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=breaking.killed_leader,
    ),
    Fault(
        name="operators-killed",
        done="every operator: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=breaking.killed_elsewhere(NAMESPACE, OPERATOR_LABELS),
    ),
    Fault(
        name="backend-killed",
        done="the backend's process: SIGKILL, as the kernel does when memory runs out",
        expected="streams end with an error event, answers under way with a 502; the next ones are held",
        promise=Promise(
            results=INTERRUPTED,
            within=NOTICED,
            slowest=HELD,
        ),
        inflict=breaking.killed("backend"),
    ),
    Fault(
        name="backend-gone",
        done="the backend's Pod: deleted without grace",
        expected="as above",
        promise=Promise(
            results=INTERRUPTED,
            within=NOTICED,
            slowest=HELD,
        ),
        inflict=breaking.gone_backend,
    ),
    Fault(
        name="readiness-flaps",
        done="the backend turns unready and ready three times",
        expected="nothing fails; requests wait",
        promise=Promise(slowest=HELD),
        inflict=breaking.readiness_flaps,
        seconds=5.0,
    ),
    Fault(
        name="keda-killed",
        done="KEDA's operator: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=breaking.killed_elsewhere(faults.KEDA, breaking.KEDA_OPERATOR),
    ),
    Fault(
        name="keda-metrics-killed",
        done="KEDA's metrics server: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=breaking.killed_elsewhere(faults.KEDA, breaking.KEDA_METRICS),
    ),
    Fault(
        name="gateways-parted",
        done="no packet between the gateways and the scaler for 30 s",
        expected="nothing fails; no scale to zero within `scaleDownStabilization` (here 60 s)",
        promise=ALL_WELL,
        inflict=breaking.gateways_parted_from_scaler,
        seconds=30.0,
    ),
    Fault(
        name="keda-parted",
        done="no packet between KEDA and the scaler for 30 s",
        expected="nothing fails, the busy service is not scaled to zero",
        promise=ALL_WELL,
        inflict=breaking.keda_parted_from_scaler,
        seconds=30.0,
    ),
    Fault(
        name="scaler-silent",
        done="the aggregate scaler: stopped for 20 s (SIGSTOP)",
        expected="nothing fails, the busy service is not scaled to zero",
        promise=ALL_WELL,
        inflict=breaking.silent("scaler"),
        seconds=20.0,
    ),
    Fault(
        name="api-server-paused",
        done="the API server: stopped for 30 s",
        expected="no warm request fails; cold ones are held",
        promise=ALL_WELL,
        inflict=breaking.api_server_paused,
        seconds=30.0,
    ),
    Fault(
        name="dns-silent",
        done="cluster DNS: stopped for 15 s",
        expected="no warm request fails; cold ones are held",
        promise=ALL_WELL,
        inflict=breaking.dns_silent,
    ),
    Fault(
        name="dns-slow",
        done="cluster DNS answers up to 0.8 s late, for 20 s",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=breaking.dns_slow,
        seconds=20.0,
    ),
    Fault(
        name="rotation",
        done="client keys, demand token, gateways, scaler, operator: all replaced at once",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=breaking.everything_rotated,
        seconds=30.0,
    ),
    Fault(
        name="gateway-clock",
        done=f"the clock of one of two gateways: {skewing.SKEW} s ahead for a minute",
        expected=IN_ORDER,
        promise=TOLD,
        inflict=skewing.gateways_ahead,
        seconds=60.0,
    ),
    Fault(
        name="scaler-clock",
        done=f"the aggregate scaler's clock: {skewing.SKEW} s behind for a minute",
        expected=IN_ORDER,
        promise=TOLD,
        inflict=skewing.scalers_behind,
        seconds=60.0,
    ),
    Fault(
        name="operator-clock",
        done=f"the clock of the operator that leads: {skewing.SKEW} s ahead for a minute",
        expected=f"{IN_ORDER}; it leads on",
        promise=TOLD,
        inflict=skewing.leader_ahead,
        seconds=60.0,
    ),
    Fault(
        name="standby-clock",
        done=f"the clock of the operator that stands by: {skewing.SKEW} s ahead for half a minute",
        expected="nothing fails; the other one leads on",
        promise=ALL_WELL,
        inflict=skewing.standby_ahead,
        seconds=30.0,
    ),
    Fault(
        name="cache-full",
        done="the disk of a model's cache: full in the middle of the download, freed after 20 s",
        expected="nothing of what serves fails; the status says `NoSpace`; room again, and it is done",
        promise=ALL_WELL,
        inflict=filling.cache_full,
        seconds=20.0,
    ),
    Fault(
        name="node-full",
        done="the disk of the busy backend's node: full, so that its kubelet evicts everything there",
        expected="what is evicted cuts what it carries, nothing else; all of it comes back on the other node",
        promise=Promise(
            results=INTERRUPTED | {UNREACHED, CUT}, within=filling.EVICTED_SECONDS + NOTICED, slowest=HELD
        ),
        inflict=filling.node_full,
        seconds=10.0,
    ),
)


@contextmanager
def inflicted(fault: Fault, field: Field) -> Iterator[None]:
    """The fault, within the block."""
    with contextmanager(fault.inflict)(field):
        yield
