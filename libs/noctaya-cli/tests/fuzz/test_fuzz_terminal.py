"""Whatever somebody wrote, a terminal shows it, a program reads it back, a picture stays one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st
from noctaya_cli.cluster.demand import parse_metrics
from noctaya_cli.cluster.pod_metrics import parse_samples
from noctaya_cli.events import Event, EventKind
from noctaya_cli.gateway_stats import parse_stats
from noctaya_cli.log_tail import CHUNK, LINE_LIMIT, LogFollower, message_of
from noctaya_cli.terminal import LONGEST, json_text, plain, xml_text
from noctaya_cli.timeline import TimelineRecorder
from noctaya_cli.view import LiveView, PlainLines
from rich.console import Console

from .hostile import JSON, NUMBERS, TEXT, raw

METRICS = st.lists(
    st.builds(
        "{}{} {}".format,
        st.sampled_from(
            ["noctaya_gateway_demand", "noctaya_gateway_pending", "noctaya_gateway_scaler_streams", "other"]
        ),
        st.sampled_from(["", '{side="server"}', '{moment="ready"}', "{", '{a="\x1b[31m"}']),
        NUMBERS,
    )
    | TEXT,
    max_size=6,
).map("\n".join)


@given(text=TEXT)
@example(text="\t")
@example(text="\x1b[31m" * 10_000)
def test_fuzz_a_line_of_a_log_is_one_line_of_the_terminal(text: str) -> None:
    shown = plain(text)
    assert raw(shown) <= {"\t"}
    assert "\n" not in shown
    assert len(shown) <= LONGEST + 1
    shown.encode()


@given(value=JSON)
def test_fuzz_json_is_shown_as_it_is_read(value: object) -> None:
    text = json_text(value)
    assert raw(text) == set()
    text.encode()
    assert json.dumps(json.loads(text)) == json.dumps(value)


@given(text=TEXT)
def test_fuzz_text_of_a_picture_is_text(text: str) -> None:
    drawn = ElementTree.fromstring(f"<svg><title>{xml_text(text)}</title></svg>")
    assert [each.tag for each in drawn] == ["title"]
    assert list(drawn[0]) == []


@given(text=METRICS)
@example(text="noctaya_gateway_demand 1e999\nnoctaya_gateway_pending NaN")
def test_fuzz_what_a_pod_answers_is_numbers_or_nothing(text: str) -> None:
    stats = parse_stats(text)
    assert all(number < 10**309 for number in (stats.demand, stats.pending))
    parse_metrics(text)
    for value in (*parse_samples(text).values(), *stats.moments.values()):
        assert float("-inf") < value < float("inf")


@given(line=TEXT | JSON.map(json.dumps))
@example(line="[" * 100_000)
@example(line='{"msg":' + "[" * 100_000)
def test_fuzz_a_line_of_a_log_has_a_message(line: str) -> None:
    assert isinstance(message_of(line), str)


@given(source=TEXT, text=TEXT)
def test_fuzz_logs_and_events_of_a_run_do_not_steer_the_terminal(source: str, text: str) -> None:
    out = io.StringIO()
    view = PlainLines(out, timelines=TimelineRecorder())
    view.line("one", text)
    view(Event(EventKind.NOTE, "one", 0.0, 0.0, "one-1", {"text": text}))
    assert raw(out.getvalue()) <= {"\t"}
    assert out.getvalue().count("\n") == 2
    drawn = io.StringIO()
    console = Console(file=drawn, width=100, color_system=None)
    live = LiveView(console, statuses=list, directory=Path("logs"))
    live.line("one", text)
    live(Event(EventKind.NOTE, "one", 0.0, 0.0, "one-1", {"text": text}))
    console.print(live.picture())
    assert raw(drawn.getvalue()) == set()


def test_fuzz_a_line_without_an_end_is_not_kept_for_ever(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * (LINE_LIMIT + 2 * CHUNK))
    shown: list[str] = []
    follower = LogFollower(log, show=shown.append)
    while follower.read():
        assert sum(map(len, shown)) <= LINE_LIMIT + 2 * CHUNK
    assert [len(line) >= LINE_LIMIT for line in shown] == [True]
