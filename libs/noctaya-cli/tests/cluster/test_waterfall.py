"""The picture of a cold start."""

import runpy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from noctaya_api.activation_timeline import PHASES
from noctaya_api.v1alpha1.llmservice_status import ActivationRecord
from noctaya_cli.cluster.former_starts import LETTERS, draw_former_svg, draw_former_text, formers_of
from noctaya_cli.cluster.waterfall import MEANING, Waterfall, age, draw_svg, draw_text, waterfall_of

from . import objects
from .conftest import NOW


def picture(**changes: Any) -> Waterfall:
    record = ActivationRecord.model_validate({**objects.ACTIVATION, **changes})
    return waterfall_of(record, service="models/chat", now=NOW)


def test_the_text_shows_each_phase_where_it_was() -> None:
    assert list(draw_text(picture(), width=60)) == [
        "models/chat: cold start of 20.00 s, 10m ago",
        "  autoscaling ▉                                     0.50 s",
        "  scheduling  ▉                                     0.50 s",
        "  image pull   █▊                                   1.00 s",
        "  start          █▊                                 1.00 s",
        "  load             ████████████████████████████▉   17.00 s ←",
        "  ready                                            20.00 s",
        "  most of it: load, 85 % (the engine loaded the model and",
        "    passed its probe)",
        "  the Pod's times are whole seconds: start, load and first",
        "    byte may be off by one",
    ]


def test_no_line_is_wider_than_the_terminal() -> None:
    records = [ActivationRecord.model_validate(objects.ACTIVATION)]
    formers = formers_of(records, service="models/chat", now=NOW)
    for width in (36, 40, 50, 80, 200):
        drawn = [
            *draw_text(picture(message="no room " * 20), width=width),
            *draw_former_text(formers, width=width),
        ]
        assert [line for line in drawn if len(line) > width] == []


def test_an_activation_that_goes_on_is_measured_until_now() -> None:
    going_on = picture(outcome="InProgress", ready=None, requested="2026-11-30T09:59:30Z", message="no room")
    lines = list(draw_text(going_on, width=80))
    assert lines[0] == "models/chat: cold start going on for 30.00 s, 30s ago"
    assert lines[-1] == "  in the way: no room"
    assert not going_on.finished


def test_the_phase_that_goes_on_is_drawn_until_now_and_is_the_longest() -> None:
    begun = {"outcome": "InProgress", "requested": "2026-11-30T09:59:30Z", "message": "no such image"}
    stuck = ActivationRecord.model_validate(
        {**begun, "replicasWritten": "2026-11-30T09:59:31Z", "scheduled": "2026-11-30T09:59:32Z"}
    )
    waterfall = waterfall_of(stuck, service="a/b", now=NOW)
    assert list(draw_text(waterfall, width=60)) == [
        "a/b: cold start going on for 30.00 s, 30s ago",
        "  autoscaling █▏                                    1.00 s",
        "  scheduling   █▏                                   1.00 s",
        "  on the node   ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   28.00 s ←",
        "  so far                                           30.00 s",
        "  in the way: no such image",
    ]
    assert draw_svg(waterfall).count('opacity="0.5"') == 1


@pytest.mark.parametrize(
    ("known", "label"),
    [
        ({}, "demand"),
        ({"kedaTold": "2026-11-30T09:50:01Z"}, "autoscaling"),
        ({"replicasWritten": "2026-11-30T09:50:01Z"}, "scheduling"),
        ({"scheduled": "2026-11-30T09:50:01Z", "imagesPulled": "2026-11-30T09:50:02Z"}, "start"),
        ({"scheduled": "2026-11-30T09:50:01Z", "started": "2026-11-30T09:50:02Z"}, "load"),
    ],
)
def test_what_goes_on_follows_from_what_is_over(known: dict[str, str], label: str) -> None:
    record = {"outcome": "InProgress", "requested": "2026-11-30T09:50:00Z", **known}
    waterfall = waterfall_of(ActivationRecord.model_validate(record), service="a/b", now=NOW)
    assert (waterfall.bars[-1].label, waterfall.bars[-1].going_on) == (label, True)


def test_one_that_failed_ends_with_what_was_reached() -> None:
    failed = picture(outcome="Failed", ready=None)
    assert failed.title == "models/chat: cold start that failed, 10m ago"
    assert failed.total == 3.0


def test_one_that_was_given_up_shows_what_it_waited_for_until_then() -> None:
    failed = picture(outcome="Failed", ready=None, started=None, ended="2026-11-30T09:55:00Z")
    lines = list(draw_text(failed, width=60))
    assert [line.split()[0] for line in lines[1:6]] == [
        "autoscaling",
        "scheduling",
        "image",
        "start",
        "given",
    ]
    assert lines[4].endswith("298.00 s ←")
    assert "300.00 s given up" in draw_svg(failed)


def test_one_of_which_nothing_is_known_is_drawn_too() -> None:
    empty = waterfall_of(
        ActivationRecord.model_validate({"outcome": "InProgress", "requested": "2026-11-30T10:00:00Z"}),
        service="a/b",
        now=NOW,
    )
    assert [line.split()[0] for line in draw_text(empty)][1:] == ["demand", "so"]
    ET.fromstring(draw_svg(empty))


def test_the_svg_has_a_bar_a_phase_and_escapes_names() -> None:
    record = ActivationRecord.model_validate(objects.ACTIVATION)
    svg = draw_svg(waterfall_of(record, service="a/<b>&", now=NOW))
    root = ET.fromstring(svg)
    assert len(root.findall(".//{http://www.w3.org/2000/svg}rect")) == 5
    assert "<b>" not in svg


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")]
)
def test_ages_are_written_as_kubectl_does(seconds: float, text: str) -> None:
    assert age(seconds) == text


ID = "0af7651916cd43dd8448eb211c80319c"


def test_t1_the_picture_ends_with_the_first_byte_and_names_the_activation() -> None:
    whole = picture(id=ID, kedaTold="2026-11-30T09:50:00.250Z", firstByte="2026-11-30T09:50:25Z")
    assert list(draw_text(whole, width=60)) == [
        "models/chat: cold start of 20.00 s, 10m ago",
        "  demand      ▍                                     0.25 s",
        "  autoscaling ▍                                     0.25 s",
        "  scheduling  ▋                                     0.50 s",
        "  image pull   █▍                                   1.00 s",
        "  start         █▍                                  1.00 s",
        "  load            ███████████████████████▏         17.00 s ←",
        "  first byte                             ██████▊    5.00 s",
        "  ready                                            20.00 s",
        "  answered                                         25.00 s",
        "  most of it: load, 68 % (the engine loaded the model and",
        "    passed its probe)",
        "  the Pod's times are whole seconds: start, load and first",
        "    byte may be off by one",
        f"  activation: {ID}",
    ]
    assert "25.00 s answered" in draw_svg(whole)


def test_t1_former_cold_starts_are_a_line_each_on_one_scale() -> None:
    slow = {**objects.ACTIVATION, "ready": "2026-11-30T09:50:40Z", "ended": "2026-11-30T09:55:00Z"}
    gave_up = {"outcome": "Failed", "requested": "2026-11-30T08:00:00Z", "scheduled": "2026-11-30T08:00:10Z"}
    records = [ActivationRecord.model_validate(each) for each in (objects.ACTIVATION, slow, gave_up)]
    formers = formers_of(records, service="models/chat", now=NOW)
    assert list(draw_former_text(formers, width=74)) == [
        "Before that (a autoscaling, s scheduling, i image pull, e engine start, l",
        "  load):",
        "    10m ago     20.00 s  sielllllllllllllllll",
        "    10m ago     40.00 s  sielllllllllllllllllllllllllllllllllllll",
        "     2h ago      failed  ssssssssss",
    ]
    root = ET.fromstring(f"<svg>{''.join(draw_former_svg(formers, top=100))}</svg>")
    assert [each.text for each in root.iter("text")][1::2] == ["20.00 s", "40.00 s", "failed"]
    assert list(draw_former_text((), width=74)) == []


def test_every_phase_has_a_meaning_and_a_letter_of_its_own() -> None:
    assert set(MEANING) == set(LETTERS) == set(PHASES)
    assert len(set(LETTERS.values())) == len(PHASES)


def test_the_picture_in_the_docs_is_what_the_command_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(__file__).parents[4] / "docs" / "pictures" / "explain.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0
