"""Phases of an activation from the times of its record."""

from datetime import UTC, datetime

from noctaya_api.activation_timeline import PHASES, TOTAL, phases, spans
from noctaya_api.v1alpha1.llmservice_status import (
    ActivationDurations,
    ActivationOutcome,
    ActivationRecord,
)


def record(**times: str) -> ActivationRecord:
    return ActivationRecord(
        outcome=ActivationOutcome.SUCCEEDED, requested="2026-11-30T10:00:00.250Z", **times
    )


def test_each_phase_begins_where_the_one_before_it_ended() -> None:
    whole = record(
        replicas_written="2026-11-30T10:00:00.500Z",
        scheduled="2026-11-30T10:00:01Z",
        weights_present="2026-11-30T10:00:03Z",
        images_pulled="2026-11-30T10:00:04Z",
        started="2026-11-30T10:00:05Z",
        ready="2026-11-30T10:00:09.250Z",
    )
    assert list(phases(whole)) == [
        ("autoscaling", 0.25),
        ("scheduling", 0.5),
        ("weights", 2.0),
        ("image_pull", 1.0),
        ("start", 1.0),
        ("load", 4.25),
        ("total", 9.0),
    ]


def test_a_phase_whose_begin_or_end_is_unknown_is_absent() -> None:
    assert list(phases(record(started="2026-11-30T10:00:05Z"))) == []
    known = record(scheduled="2026-11-30T10:00:02Z", started="2026-11-30T10:00:05Z")
    assert list(phases(known)) == [("scheduling", 1.75), ("start", 3.0)]


def test_whole_seconds_of_the_kubelet_never_make_a_negative_phase() -> None:
    early = record(replicas_written="2026-11-30T10:00:01.900Z", scheduled="2026-11-30T10:00:01Z")
    begin = datetime(2026, 11, 30, 10, 0, 1, 900_000, tzinfo=UTC)
    assert list(spans(early))[1:] == [("scheduling", begin, begin)]


def test_the_gateways_moments_are_phases_of_their_own() -> None:
    asked = record(
        keda_told="2026-11-30T10:00:00.375Z",
        replicas_written="2026-11-30T10:00:01.250Z",
        ready="2026-11-30T10:00:09.250Z",
        first_byte="2026-11-30T10:00:09.750Z",
    )
    assert list(phases(asked)) == [
        ("demand", 0.125),
        ("autoscaling", 0.875),
        ("first_byte", 0.5),
        ("total", 9.0),
    ]


def test_every_phase_has_its_place_in_the_status() -> None:
    assert {*PHASES, TOTAL} == set(ActivationDurations.model_fields)
