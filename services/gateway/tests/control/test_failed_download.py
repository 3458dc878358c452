"""Weights that could not be downloaded: who can't wait for the next try is told why at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_gateway.activation import RETRY_AFTER_LIMIT
from noctaya_gateway.errors import ActivationFailed
from noctaya_gateway.models import State
from noctaya_gateway.prewarming import RETRY_UNKNOWN, parse_notice

from .notices import notice
from .test_gate import TIMEOUT, Rig

WHY = "the weights could not be downloaded: no access"


def failed(left: float | None = None) -> str:
    return notice(WHY, state="failed", left=left)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prewarming"


@pytest.mark.parametrize(
    ("left", "advice"),
    [(None, RETRY_UNKNOWN), (TIMEOUT * 3, RETRY_AFTER_LIMIT), (86400.0, RETRY_AFTER_LIMIT)],
)
def test_g9_a_cold_request_is_refused_at_once_with_the_reason(
    file: Path, left: float | None, advice: int
) -> None:
    file.write_text(failed(left))
    rig = Rig(prewarming=file)
    for _ in range(3):
        with pytest.raises(ActivationFailed) as refused:
            rig.gate.begin_activation()
        assert (refused.value.status, refused.value.code) == (503, "activation_failed")
        assert "could not be downloaded: no access" in refused.value.message
        assert ("tried again in about" in refused.value.message) is (left is not None)
        assert refused.value.headers == ((b"retry-after", b"%d" % advice),)
    assert not rig.activation.pending
    assert rig.activation.failures == 0
    assert rig.gate.demand.effective == 0
    assert rig.gate.state is State.COLD
    assert isinstance(rig.gate.cold_error(), ActivationFailed)


def test_g9_who_waits_already_is_told_and_the_weights_end_the_refusals(file: Path) -> None:
    rig = Rig(prewarming=file)
    waiter = rig.hold()
    file.write_text(failed())
    rig.activation.doom(WHY)
    assert isinstance(waiter.error, ActivationFailed)
    assert "no access" in waiter.error.message
    for _ in range(10):
        rig.timers.advance(60)
        with pytest.raises(ActivationFailed):
            rig.gate.begin_activation()
    file.write_text("")
    rig.timers.advance(1)
    rig.gate.begin_activation()
    assert rig.activation.pending


def test_a_notice_without_words_has_its_own() -> None:
    assert parse_notice('{"state": "failed"}') == (
        "the weights of the model could not be downloaded",
        None,
        "failed",
    )
