"""What people and programs get to see: events, sentences, timelines, phases, the picture."""

import asyncio
import errno
import io
import json
import shutil
from pathlib import Path

import pytest
from noctaya_cli.events import Event, EventFile, EventKind, EventLog
from noctaya_cli.gateway_stats import parse_stats
from noctaya_cli.log_tail import LogFollower, bound_size, last_line
from noctaya_cli.sentences import SENTENCES, describe
from noctaya_cli.status import Phase, ServiceStatus
from noctaya_cli.timeline import Activation, Mark, TimelineRecorder
from noctaya_cli.view import LiveView, PlainLines, render_service
from rich.console import Console


def event(kind: EventKind, at: float = 0.0, service: str = "one", **details: object) -> Event:
    return Event(kind, service, at, 1_000_000_000 + at, "one-1", details)


def test_events_reach_every_subscriber_with_both_clocks() -> None:
    log = EventLog(clock=lambda: 50.0, wall=lambda: 1000.0)
    seen: list[Event] = []
    log.subscribe(seen.append)
    log.emit(EventKind.ACTIVATED, {"by": "push"}, service="one")
    log.emit(EventKind.REQUESTED, service="one", wall=999.5)
    assert [(e.kind, e.at, e.wall) for e in seen] == [
        (EventKind.ACTIVATED, 50.0, 1000.0),
        (EventKind.REQUESTED, 49.5, 999.5),
    ]


def test_the_events_file_has_one_json_object_a_line_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "events"
    for _ in range(2):
        file = EventFile(path)
        file(event(EventKind.PROCESS_STARTED, 1.5, pid=7))
        file.close()
    first, second = path.read_text().splitlines()
    assert first == second
    assert json.loads(first) == {
        "event": "process_started",
        "service": "one",
        "replica": "one-1",
        "monotonic": 1.5,
        "wall": 1_000_000_001.5,
        "pid": 7,
    }


DETAILS: dict[str, object] = dict.fromkeys(("model", "url", "text", "reason", "phase"), "text")
DETAILS |= dict.fromkeys(("from", "to", "pid", "port", "seconds", "ran_seconds"), 1)


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_sentence_can_be_made(kind: EventKind) -> None:
    sentence = describe(Event(kind, "one", 0.0, 0.0, "one-1", DETAILS))
    assert (sentence is not None) == (kind in SENTENCES)
    assert sentence is None or "{" not in sentence


def test_plain_lines_have_a_time_and_a_service() -> None:
    out = io.StringIO()
    lines = PlainLines(out, timelines=TimelineRecorder())
    lines(event(EventKind.REPLICA_READY))
    lines(event(EventKind.DEMAND, demand=1))
    (line,) = out.getvalue().splitlines()
    assert line.endswith(" one: one-1: ready")


def test_t1_a_cold_start_gets_a_line_of_its_own() -> None:
    out, timelines = io.StringIO(), TimelineRecorder()
    lines = PlainLines(out, timelines=timelines)
    for kind, at in ((EventKind.ACTIVATED, 1.1), (EventKind.REQUESTED, 1.0), (EventKind.FIRST_BYTE, 3.5)):
        timelines(event(kind, at))
        lines(event(kind, at))
    last = out.getvalue().splitlines()[-1]
    assert last.endswith("one: cold start 2.50 s: requested 0.00 → activated 0.10 → first byte 2.50")


def test_a_cold_start_is_told_once_even_if_its_gateway_is_restarted() -> None:
    out, timelines = io.StringIO(), TimelineRecorder()
    lines = PlainLines(out, timelines=timelines)
    first = [EventKind.ACTIVATED, EventKind.FIRST_BYTE, EventKind.GATEWAY_STARTED, EventKind.FIRST_BYTE]
    for at, kind in enumerate([*first, EventKind.ACTIVATED, EventKind.FIRST_BYTE], start=1):
        timelines(event(kind, float(at)))
        lines(event(kind, float(at)))
    assert out.getvalue().count("cold start") == 2


def test_a_timeline_keeps_the_first_moment_of_each_kind() -> None:
    recorder = TimelineRecorder()
    for kind, at in (
        (EventKind.ACTIVATED, 10.2),
        (EventKind.REQUESTED, 10.0),
        (EventKind.PROCESS_STARTED, 10.5),
        (EventKind.PROCESS_STARTED, 12.0),
        (EventKind.REPLICA_READY, 13.0),
        (EventKind.FIRST_BYTE, 13.25),
    ):
        recorder(event(kind, at))
    activation = recorder.last("one")
    assert activation is not None
    assert {mark: round(since, 3) for mark, since in activation.steps()} == {
        Mark.REQUESTED: 0.0,
        Mark.ACTIVATED: 0.2,
        Mark.PROCESS_STARTED: 0.5,
        Mark.READY: 3.0,
        Mark.FIRST_BYTE: 3.25,
    }
    assert activation.elapsed(now=99) == pytest.approx(3.25)


def test_a_new_activation_starts_a_new_timeline_and_services_have_their_own() -> None:
    recorder = TimelineRecorder()
    recorder(event(EventKind.ACTIVATED, 1))
    recorder(event(EventKind.REPLICA_READY, 2))
    recorder(event(EventKind.ACTIVATED, 5))
    recorder(event(EventKind.REPLICA_READY, 6, service="two"))
    activation = recorder.last("one")
    assert activation is not None
    assert not activation.ready
    assert activation.elapsed(now=7) == 2
    assert recorder.last("two") is None


def test_the_gateways_numbers_are_read_from_its_metrics() -> None:
    stats = parse_stats(
        "# HELP noctaya_gateway_pending Admitted requests.\n"
        "noctaya_gateway_pending 3.0\n"
        "noctaya_gateway_demand 4.0\n"
        'noctaya_gateway_last_activation_timestamp_seconds{moment="requested"} 1.7960229325e+09\n'
    )
    assert (stats.pending, stats.demand) == (3, 4)
    assert stats.moments == {"requested": 1796022932.5}
    assert parse_stats("").demand == 0


def status(phase: Phase = Phase.LOADING, *, demand: int | None = 2, reason: str = "") -> ServiceStatus:
    return ServiceStatus(
        name="one",
        url="http://127.0.0.1:8080/v1",
        model="hf://a/b",
        runtime="engine",
        phase=phase,
        reason=reason,
        ready=0,
        replicas=1,
        maximum=3,
        leaving=1,
        demand=demand,
        pending=demand,
        activation=Activation({Mark.REQUESTED: 1.0, Mark.ACTIVATED: 1.25}),
    )


def drawn(picture: object) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(picture)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_service_is_drawn_with_its_numbers_and_its_activation() -> None:
    text = drawn(render_service(status(), now=3.0))
    assert "◐ one  Loading  replicas 0/1 (max 3)  leaving 1  demand 2  queue 2" in text
    assert "http://127.0.0.1:8080/v1" in text
    assert "cold start 2.00 s" in text
    assert "requested 0.00" in text
    assert "→ activated 0.25 → …" in text


def test_unknown_numbers_are_dashes_and_reasons_are_shown() -> None:
    text = drawn(render_service(status(Phase.DEGRADED, demand=None, reason="one-1: exit code 3"), now=3.0))
    assert "demand –  queue –" in text
    assert "one-1: exit code 3" in text


def test_the_picture_has_services_recent_events_and_the_log_directory() -> None:
    console = Console(file=io.StringIO(), width=120)
    view = LiveView(console, statuses=lambda: [status()], directory=Path("/var/log/run"))
    view(event(EventKind.REPLICA_READY))
    text = drawn(view.picture())
    for part in ("one  Loading", "one: one-1: ready", "/var/log/run", "Ctrl-C"):
        assert part in text


def test_the_last_line_of_a_log_is_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_text("first\nlast words \n\n")
    assert last_line(log) == "last words"
    log.write_bytes(b"x" * 20_000 + b"\nlast \xff\n")
    assert last_line(log) == "last \N{REPLACEMENT CHARACTER}"


def test_a_follower_shows_whole_lines_once(tmp_path: Path) -> None:
    log, seen = tmp_path / "log", list[str]()
    follower = LogFollower(log, show=seen.append)
    assert not follower.read()
    log.write_text("one\ntw")
    assert follower.read()
    with log.open("a") as file:
        file.write("o\n")
    assert follower.read()
    assert not follower.read()
    assert seen == ["one", "two"]


def test_the_message_of_a_structured_line_is_what_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"level": "error", "msg": "the gateway can\'t start"}\n')
    assert last_line(log) == "the gateway can't start"


def test_a_log_that_grows_too_large_is_moved_aside_and_followed_on(tmp_path: Path) -> None:
    log, seen = tmp_path / "log", list[str]()
    follower = LogFollower(log, show=seen.append)
    with log.open("a") as process:
        process.write("one\n" * 10)
        process.flush()
        follower.read()
        bound_size(log, limit=1000)
        assert log.stat().st_size == 40
        bound_size(log, limit=10)
        assert (tmp_path / "log.1").stat().st_size == 40
        process.write("two\n")
    follower.read()
    assert seen[-1] == "two"
    assert log.read_text() == "two\n"


def test_a_log_is_emptied_even_when_the_disk_has_no_room_for_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text("flood\n" * 100)

    def full(_source: Path, target: Path) -> None:
        target.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    bound_size(log, limit=10)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert log.read_text() == ""


async def test_following_a_flood_leaves_time_for_everything_else(tmp_path: Path) -> None:
    log, seen = tmp_path / "log", list[str]()
    log.write_text("0123456789\n" * 200_000)
    following = asyncio.create_task(LogFollower(log, show=seen.append).run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < len(seen) < 100_000
    following.cancel()


def test_a_reader_that_is_gone_ends_no_service() -> None:
    class Broken(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    lines = PlainLines(Broken(), timelines=TimelineRecorder())
    lines.line("one", "first")
    lines.line("one", "second")


def test_a_full_disk_ends_the_events_file_only(capsys: pytest.CaptureFixture[str]) -> None:
    file = EventFile(Path("/dev/full"))
    file(event(EventKind.REPLICA_READY))
    file(event(EventKind.REPLICA_READY))
    file.close()
    assert "events are written no more: No space left on device" in capsys.readouterr().err
