"""`noctaya status` on terminals of every width: the problem is seen at a glance."""

from typing import Any

import pytest
from noctaya_cli.cluster.demand import GatewayNumbers
from noctaya_cli.cluster.service_view import view_of
from noctaya_cli.cluster.status import Fleet, draw_fleet
from noctaya_cli.cluster.table import draw_table

from . import objects
from .conftest import NOW

MESSAGE = "container serving: image registry.example.com/vllm/vllm-openai:nope: not found"


def fleet(**status: Any) -> Fleet:
    broken = objects.llm_service(
        "qwen-large",
        conditions=[objects.condition("Degraded", "True", "ImagePullFailed", MESSAGE)],
        phase="Degraded",
        **status,
    )
    services = (view_of(broken), view_of(objects.llm_service(lastActivation=objects.ACTIVATION)))
    return Fleet(services=services, numbers={("models", "chat"): GatewayNumbers(0, 0, 0, 1)})


def test_at_80_columns_the_problem_stands_below_the_table_in_full() -> None:
    assert list(draw_fleet(fleet(), now=NOW, everywhere=False, width=80)) == [
        "NAME        PHASE         REPLICAS  DEMAND  QUEUE  PROBLEM",
        "qwen-large  Degraded      0/3       -       -      ImagePullFailed",
        "chat        ScaledToZero  0/3       0       0      -",
        "",
        "✖ qwen-large: ImagePullFailed: container serving: image",
        "  registry.example.com/vllm/vllm-openai:nope: not found",
        "→ noctaya explain qwen-large -n models",
    ]


@pytest.mark.parametrize("width", [36, 40, 60, 80, 120, 400])
@pytest.mark.parametrize("everywhere", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, everywhere: bool) -> None:
    lines = list(draw_fleet(fleet(), now=NOW, everywhere=everywhere, width=width))
    # A command is there to be copied, so it is never cut.
    assert [line for line in lines if len(line) > width and not line.startswith("→ noctaya")] == []
    assert "ImagePullFailed" in "\n".join(lines)
    assert {line.split()[0 if not everywhere else 1] for line in lines[1:3]} == {"qwen-large", "chat"}


def test_a_terminal_with_room_has_it_in_one_line() -> None:
    lines = list(draw_fleet(fleet(), now=NOW, everywhere=False, width=200))
    assert len(lines) == 3
    assert lines[1].endswith(f"ImagePullFailed: {MESSAGE}")


def test_output_to_a_file_has_every_column_and_nothing_cut() -> None:
    header, *_ = draw_fleet(fleet(), now=NOW, everywhere=False, width=None)
    assert "KEPT" in header


def test_what_somebody_keeps_is_shown_as_long_as_there_is_room() -> None:
    kept = fleet(keep={"state": "Asleep", "replicas": 0})
    header, *_ = draw_fleet(kept, now=NOW, everywhere=False, width=80)
    assert "KEPT" in header
    header, *_ = draw_fleet(kept, now=NOW, everywhere=False, width=40)
    assert header.split() == ["NAME", "PHASE", "PROBLEM"]


def test_columns_are_left_out_in_their_order_and_only_as_needed() -> None:
    header, rows = ("NAME", "A", "B", "LAST"), [("chat", "1", "2", "x")]
    assert next(iter(draw_table(header, rows, width=16, spare=("B", "A")))) == "NAME  A  B  LAST"
    assert next(iter(draw_table(header, rows, width=15, spare=("B", "A")))) == "NAME  A  LAST"
    assert next(iter(draw_table(header, rows, width=12, spare=("B", "A")))) == "NAME  LAST"
    assert next(iter(draw_table(header, (), width=5, spare=("B", "A")))) == "NAME…"
