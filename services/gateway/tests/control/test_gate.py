from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from noctaya_api.demand.signal import DemandSignal
from noctaya_gateway.activation import Activation
from noctaya_gateway.admission import Admission
from noctaya_gateway.auth import Authenticator
from noctaya_gateway.cors import Cors
from noctaya_gateway.demand import DemandMeter
from noctaya_gateway.errors import ActivationFailed, ActivationTimeout, ColdStart, Prewarming
from noctaya_gateway.gate import Gate
from noctaya_gateway.metrics import GatewayMetrics
from noctaya_gateway.models import Models, State
from noctaya_gateway.prewarming import PrewarmingFile

from .notices import notice
from .waiters import A, Held, LineRig

TIMEOUT = 100.0


@dataclass
class Query:
    method: bytes = b"GET"
    target: bytes = b"/"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


class Rig(LineRig):
    def __init__(self, *, reject: bool = False, prewarming: Path | None = None) -> None:
        super().__init__(timeout=TIMEOUT)
        self.prewarming = PrewarmingFile(prewarming, timers=self.timers, jitter=lambda: 0.0)
        self.admission = Admission(10)
        self.activation = Activation(
            timers=self.timers,
            timeout=TIMEOUT,
            grace=15.0,
            is_ready=lambda: self.balancer.ready,
            excused=lambda: self.prewarming.notice() is not None,
            jitter=lambda: 0.0,
        )
        self.metrics = GatewayMetrics()
        self.gate = Gate(
            timers=self.timers,
            auth=Authenticator(None),
            admission=self.admission,
            activation=self.activation,
            balancer=self.balancer,
            line=self.line,
            demand=DemandMeter(
                admission=self.admission,
                activation=self.activation,
                signal=DemandSignal(),
                timers=self.timers,
            ),
            metrics=self.metrics,
            models=Models(["qwen"], created=1),
            cors=Cors(["https://app"]),
            reject_cold=reject,
            heartbeats=True,
            prewarming=self.prewarming,
        )

    def hold(self) -> Held:
        waiter = Held()
        self.activation.begin()
        self.line.hold(waiter, heartbeats=True)
        return waiter


def test_readiness_ends_the_activation_and_releases_the_line() -> None:
    rig = Rig()
    waiters = [rig.hold() for _ in range(3)]
    assert (rig.gate.state, rig.gate.open) == (State.ACTIVATING, False)
    rig.timers.advance(5)
    rig.up()
    assert [waiter.address for waiter in waiters] == [A] * 3
    assert not rig.activation.pending
    assert rig.activation.in_grace
    assert rig.metrics.activations == {"ready": 1}
    assert (rig.gate.state, rig.gate.open) == (State.READY, True)


def test_a_warm_service_with_a_line_is_not_open() -> None:
    rig = Rig()
    rig.up()
    assert rig.gate.open
    rig.line.hold(Held(), heartbeats=False)
    assert rig.gate.ready
    assert not rig.gate.open


def test_g4_of_contracts_a_lone_request_gets_activation_timeout_not_activation_failed() -> None:
    rig = Rig()
    waiter = rig.hold()
    rig.timers.advance(TIMEOUT)
    assert isinstance(waiter.error, ActivationTimeout)
    assert rig.activation.failures == 1
    assert rig.metrics.activations == {"expired": 1}


def test_g9_those_who_came_late_are_told_when_the_lease_can_be_renewed_no_more() -> None:
    rig = Rig()
    waiters = []
    for _ in range(20):
        waiters.append(rig.hold())
        rig.timers.advance(10)
    errors = [type(waiter.error) for waiter in waiters]
    assert errors[:11] == [ActivationTimeout] * 11
    assert set(errors[11:]) == {ActivationFailed}
    assert len(rig.line) == 0
    assert rig.gate.demand.effective == 0


def test_g9_a_doomed_activation_is_told_to_everyone_held_with_its_reason() -> None:
    rig = Rig()
    waiters = [rig.hold() for _ in range(3)]
    rig.activation.doom("CrashLoopBackOff")
    for waiter in waiters:
        assert isinstance(waiter.error, ActivationFailed)
        assert "CrashLoopBackOff" in waiter.error.message
        assert waiter.error.headers == ((b"retry-after", b"15"),)
    assert rig.metrics.activations == {"failed": 1}
    with pytest.raises(ActivationFailed):
        rig.activation.begin()


def test_g10_of_contracts_a_client_that_leaves_ends_neither_the_lease_nor_counts_as_a_timeout() -> None:
    rig = Rig()
    rig.activation.begin()
    waiter = Held()
    rig.line.hold(waiter, heartbeats=True).cancel()
    rig.timers.advance(TIMEOUT - 1)
    assert rig.activation.pending
    assert rig.gate.demand.effective == 1
    assert waiter.calls == []
    assert rig.metrics.rejections == {}


def test_a_backend_lost_while_requests_wait_begins_a_new_activation() -> None:
    rig = Rig()
    rig.up()
    rig.balancer.report_unreachable(A)
    rig.line.hold(Held(), heartbeats=False)
    rig.down()
    assert rig.activation.pending
    assert rig.gate.demand.effective == 1


def test_a_backend_lost_while_nobody_waits_begins_nothing() -> None:
    rig = Rig()
    rig.up()
    rig.down()
    assert not rig.activation.pending
    assert rig.gate.state is State.COLD


def test_g3_safe_requests_on_a_cold_service_are_answered_without_demand() -> None:
    rig = Rig()
    assert rig.gate.answer_cold(Query(target=b"/v1/models")).status == 200
    with pytest.raises(ColdStart) as refusal:
        rig.gate.answer_cold(Query(target=b"/favicon.ico"))
    ((name, seconds),) = refusal.value.headers
    assert (name, int(seconds) in range(9, 12)) == (b"retry-after", True)
    assert rig.gate.demand.effective == 0
    assert not rig.activation.pending


def test_the_refusal_says_whether_the_model_is_being_started() -> None:
    rig = Rig(reject=True)
    assert "POST" in str(rig.gate.cold_error())
    rig.activation.begin()
    assert "being started" in str(rig.gate.cold_error())


def test_cors_is_asked_through_the_gate() -> None:
    rig = Rig()
    preflight = Query(
        b"OPTIONS", b"/v1/x", [(b"origin", b"https://app"), (b"access-control-request-method", b"POST")]
    )
    assert rig.gate.cors_enabled
    reply = rig.gate.preflight(preflight)
    assert reply is not None
    assert reply.status == 204
    assert rig.gate.cors_headers(preflight)[0] == (b"access-control-allow-origin", b"https://app")


def test_closing_leaves_no_timer() -> None:
    rig = Rig()
    rig.hold()
    rig.gate.close()
    assert rig.timers.armed == 0


def weights(left: float | None) -> str:
    return notice("weights are on their way", left=left)


def test_who_can_not_wait_for_the_weights_is_refused_without_demand(tmp_path: Path) -> None:
    file = tmp_path / "prewarming"
    file.write_text(weights(TIMEOUT * 3))
    rig = Rig(prewarming=file)
    with pytest.raises(Prewarming):
        rig.gate.begin_activation()
    assert not rig.activation.pending
    assert rig.gate.demand.effective == 0
    assert rig.gate.state is State.PREWARMING
    assert isinstance(rig.gate.cold_error(), Prewarming)


@pytest.mark.parametrize(
    ("state", "left"),
    [(None, None), (None, TIMEOUT / 2), ("asleep", TIMEOUT / 2), ("failed", TIMEOUT / 2)],
)
def test_who_can_wait_for_the_end_of_a_notice_is_held_and_the_model_starts_right_after(
    tmp_path: Path, state: str | None, left: float | None
) -> None:
    file = tmp_path / "prewarming"
    file.write_text(notice("not now", state=state, left=left))
    rig = Rig(prewarming=file)
    rig.gate.begin_activation()
    waiter = rig.hold()
    assert rig.gate.demand.effective == 1
    rig.timers.advance(TIMEOUT / 2)
    file.write_text("")
    rig.up()
    assert waiter.address == A
    assert rig.gate.state is State.READY


def test_a_wait_that_the_weights_outlast_is_no_failed_activation(tmp_path: Path) -> None:
    file = tmp_path / "prewarming"
    file.write_text(weights(None))
    rig = Rig(prewarming=file)
    rig.hold()
    rig.timers.advance(TIMEOUT / 2)
    late = rig.hold()
    rig.activation.begin()
    rig.timers.advance(TIMEOUT * 2)
    assert late.error is not None
    assert not rig.activation.pending
    assert (rig.activation.failures, rig.activation.backoff_remaining) == (0, 0.0)
    rig.activation.begin()
    file.write_text("")
    rig.timers.advance(TIMEOUT + 1)
    assert rig.activation.failures == 1


def test_who_still_waits_when_the_activation_ends_hears_of_the_weights(tmp_path: Path) -> None:
    file = tmp_path / "prewarming"
    file.write_text(weights(None))
    rig = Rig(prewarming=file)
    waiter = Held()
    rig.activation.begin()
    rig.timers.advance(TIMEOUT / 2)
    rig.line.hold(waiter, heartbeats=True)
    rig.timers.advance(TIMEOUT / 2)
    assert isinstance(waiter.error, Prewarming)
