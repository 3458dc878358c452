"""Advice on every reason that a condition can have."""

from noctaya_api.conditions import KeepReason, ObservationReason, Reason, StepReason
from noctaya_cli.cluster.remedies import CommandReason, remedy

FINE = {
    Reason.SCALED_OBJECT_APPLIED,
    Reason.AVAILABLE,
    Reason.SCALED_TO_ZERO,
    Reason.INACTIVE,
    Reason.HEALTHY,
    Reason.PROGRESSING,
    KeepReason.AWAKE,
}


def test_every_reason_that_is_not_fine_has_advice() -> None:
    missing = [
        str(reason)
        for reason in (*Reason, *KeepReason, *ObservationReason, *StepReason, *CommandReason)
        if reason not in FINE and not remedy(reason)
    ]
    assert missing == []


def test_nothing_is_advised_where_all_is_well() -> None:
    assert [reason for reason in FINE if remedy(reason)] == []


def test_an_unknown_reason_has_none() -> None:
    assert remedy("FromTheFuture") is None
