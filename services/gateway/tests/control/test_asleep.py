"""A service that was put to sleep: nobody wakes it, nobody waits in vain, and it is nobody's failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from noctaya_gateway.activation import Outcome
from noctaya_gateway.control import build_control
from noctaya_gateway.errors import ActivationFailed, Asleep
from noctaya_gateway.models import State
from noctaya_gateway.prewarming import DEFAULT_ASLEEP, RETRY_UNKNOWN, parse_notice
from noctaya_gateway.settings import GatewaySettings

from .notices import notice
from .test_gate import TIMEOUT, Rig
from .waiters import Held


def asleep(left: float | None = None) -> str:
    return notice("the service is put to sleep", state="asleep", left=left)


def put(file: Path, text: str) -> None:
    file.write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prewarming"


@pytest.mark.parametrize("left", [None, TIMEOUT * 3])
def test_a_cold_request_is_refused_at_once_and_makes_no_demand(file: Path, left: float | None) -> None:
    file.write_text(asleep(left))
    rig = Rig(prewarming=file)
    with pytest.raises(Asleep) as refused:
        rig.gate.begin_activation()
    assert (refused.value.status, refused.value.code) == (503, "asleep")
    assert not rig.activation.pending
    assert rig.gate.demand.effective == 0
    assert rig.gate.state is State.ASLEEP
    assert isinstance(rig.gate.cold_error(), Asleep)


def test_without_an_end_the_advice_is_half_a_minute(file: Path) -> None:
    file.write_text(asleep())
    rig = Rig(prewarming=file)
    assert rig.gate.cold_error().headers == ((b"retry-after", b"%d" % RETRY_UNKNOWN),)


def test_who_waits_already_is_told_when_the_activation_is_called_off(file: Path) -> None:
    rig = Rig(prewarming=file)
    waiter = rig.hold()
    file.write_text(asleep())
    rig.activation.doom("the service is put to sleep")
    assert isinstance(waiter.error, Asleep)
    assert rig.gate.demand.effective == 0


def test_an_activation_that_is_doomed_otherwise_is_told_as_ever(file: Path) -> None:
    rig = Rig(prewarming=file)
    waiter = rig.hold()
    file.write_text(json.dumps({"message": "weights"}))
    rig.activation.doom("no such image")
    assert isinstance(waiter.error, ActivationFailed)


def test_who_is_held_when_the_last_backend_goes_is_told_and_wakes_nobody(file: Path) -> None:
    rig = Rig(prewarming=file)
    rig.up()
    file.write_text(asleep())
    waiter = Held()
    rig.line.hold(waiter, heartbeats=True)
    assert waiter.address is None
    rig.down()
    assert isinstance(waiter.error, Asleep)
    assert not rig.activation.pending


async def test_what_was_called_off_is_no_failure_to_wait_for(file: Path) -> None:
    settings = GatewaySettings(
        backend_url="http://127.0.0.1:1", prewarming_file=file, scaler_listen_addr="127.0.0.1:0"
    )
    activation = build_control(settings).gate.activation
    ended: list[Outcome] = []
    activation.subscribe(end=lambda outcome, why: ended.append(outcome))
    activation.begin()
    put(file, asleep())
    activation.doom("the service is put to sleep")
    assert ended == [Outcome.FAILED]
    assert (activation.failures, activation.backoff_remaining) == (0, 0.0)
    put(file, "")
    activation.begin()
    activation.doom("no such image")
    assert activation.failures == 1
    activation.close()


def test_a_notice_without_words_has_its_own() -> None:
    assert parse_notice('{"state": "asleep"}') == (DEFAULT_ASLEEP, None, "asleep")
    assert parse_notice('{"state": "awake", "message": "m"}') == ("m", None, "")
    assert parse_notice('{"state": ["asleep"], "message": "m"}') == ("m", None, "")
