"""Whatever the source does, a run ends: with the whole model, or with a reason and no marker."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from noctaya_model_hub import Effect, Hub, Match, Pattern, Served, too_many
from noctaya_prewarm.download import download
from noctaya_prewarm.errors import (
    BadSettings,
    DeadlineExceeded,
    IntegrityFault,
    Interrupted,
    NetworkFault,
    NotAuthorised,
    PrewarmError,
)
from noctaya_prewarm.run import Run

from .kit import FILES, MIB, REPOSITORY, SOURCE, WEIGHTS, assert_whole, fetch, settings

CDN = Match(route="cdn")


@pytest.mark.parametrize(
    "effect",
    [
        Effect(stall_after=300_000),
        Effect(stall_after=0),
        Effect(delay=60),
        Effect(bytes_per_second=2000),
    ],
    ids=["stops", "sends a head only", "never answers", "trickles"],
)
def test_m2_a_stalled_range_is_restarted(served: Served, hub: Hub, target: Path, effect: Effect) -> None:
    hub.faults.add(Match(route="cdn", calls={2}), effect)
    run = fetch(served, target, stall_timeout=0.5, connections=1)
    assert_whole(target, hub)
    assert run.progress.retries >= 1


@pytest.mark.parametrize(
    "effect",
    [
        Effect(cut_after=123_456),
        Effect(cut_after=0),
        Effect(cut_after=123_456, reset=True),
        Effect(announce=-1),
        Effect(announce=1),
        Effect(status=500),
        Effect(status=503),
        Effect(status=408),
        Effect(status=403),
        Effect(keep_whole=True),
    ],
    ids=["cut", "cut at once", "reset", "short", "long", "500", "503", "408", "link expired", "whole"],
)
def test_m2_a_fault_that_passes_costs_only_time(
    served: Served, hub: Hub, target: Path, effect: Effect
) -> None:
    hub.faults.add(Match(route="cdn", calls={1, 3}), effect)
    fetch(served, target)
    assert_whole(target, hub)


@pytest.mark.parametrize("route", ["info", "tree", "resolve", "cdn"])
def test_m2_429_is_retried_within_the_attempt_after_the_time_that_was_asked_for(
    served: Served, hub: Hub, target: Path, route: str
) -> None:
    hub.faults.add(Match(route=route, calls={1}), too_many(retry_after="1"))
    began = time.monotonic()
    run = fetch(served, target)
    assert time.monotonic() - began >= 1
    assert_whole(target, hub)
    assert run.progress.snapshot().attempt == 1


def test_m2_all_connections_keep_the_pause_that_one_was_asked_for(
    served: Served, hub: Hub, target: Path
) -> None:
    moments: list[float] = []
    slow_down = replace(too_many(retry_after="2"), then=lambda: moments.append(time.monotonic()))
    hub.create("org/many", {f"{n}.txt": str(n) for n in range(30)})
    hub.faults.add(Match(route="resolve", calls={3}), slow_down)
    hub.faults.add(Match(route="resolve"), Effect(then=lambda: moments.append(time.monotonic())))
    run = fetch(served, target, source="hf://org/many", connections=4)
    assert_whole(target, hub, repository="org/many")
    assert run.progress.retries == 1
    # Requests that were under way then are answered; no further one is sent before the time is over.
    asked = moments[2]
    assert sum(asked < moment < asked + 1.5 for moment in moments) <= 3


def test_m2_a_pause_longer_than_a_run_waits_ends_it_with_the_number(
    served: Served, hub: Hub, target: Path
) -> None:
    hub.faults.add(Match(route="resolve"), too_many(retry_after="3600"))
    with pytest.raises(NetworkFault, match="3600 s"):
        fetch(served, target)


def test_m2_what_never_works_ends_after_the_retry_limit(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(CDN, Effect(status=500))
    with pytest.raises(NetworkFault, match="500"):
        fetch(served, target, retry_limit=0.5)
    assert not target.exists()


def test_m2_a_hub_that_is_not_there_ends_with_its_address(served: Served, target: Path) -> None:
    with pytest.raises(NetworkFault, match=r"127\.0\.0\.1:1"):
        fetch(served, target, endpoint="http://127.0.0.1:1", retry_limit=0.3)


def test_m2_the_deadline_ends_a_run_with_what_it_has(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(CDN, Effect(stall_after=100_000))
    with pytest.raises(DeadlineExceeded, match="NOCTAYA_PREWARM_DEADLINE"):
        fetch(served, target, stall_timeout=0.5, deadline=2.0)
    assert not target.exists()


def test_m2_progress_in_small_steps_is_no_failure(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(CDN, Effect(cut_after=200_000))
    run = fetch(served, target, retry_limit=0.5)
    assert_whole(target, hub)
    assert run.progress.retries > 20


def test_m1_a_run_that_was_stopped_goes_on_where_it_was(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(CDN, Effect(stall_after=700_000))
    run = Run(settings(served, connections=2))
    stopped = threading.Thread(target=lambda: _abort_at(run, 1_000_000))
    stopped.start()
    with pytest.raises(Interrupted):
        download(run, source=SOURCE, target=target)
    stopped.join()
    assert not target.exists()
    hub.faults.clear()
    hub.requests.clear()
    second = fetch(served, target)
    assert_whole(target, hub)
    assert sum(seen.sent for seen in hub.requests.of("cdn")) <= WEIGHTS.size - 1_000_000
    assert second.progress.snapshot().bytesDone == second.progress.snapshot().bytesTotal


def test_m1_wrong_bytes_are_noticed_and_fetched_again(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(Match(route="cdn", calls={2}), Effect(flip_at=MIB + 5))
    fetch(served, target, connections=1)
    assert_whole(target, hub)


@pytest.mark.parametrize("route", ["cdn", "cache"])
def test_m1_a_source_that_always_sends_wrong_bytes_gets_no_marker(
    served: Served, hub: Hub, target: Path, route: str
) -> None:
    hub.faults.add(Match(route=route), Effect(flip_at=3))
    with pytest.raises(IntegrityFault, match="instead of"):
        fetch(served, target)
    assert not target.exists()


def test_m1_a_server_without_ranges_is_read_from_the_start(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(CDN, Effect(keep_whole=True))
    hub.faults.active.reverse()
    fetch(served, target)
    assert_whole(target, hub)


def test_m1_a_server_without_ranges_that_cuts_is_read_until_it_does_not(
    served: Served, hub: Hub, target: Path
) -> None:
    hub.faults.add(Match(route="cdn", calls=set(range(1, 14))), Effect(keep_whole=True, cut_after=4 * MIB))
    hub.faults.add(CDN, Effect(keep_whole=True))
    fetch(served, target)
    assert_whole(target, hub)


@pytest.mark.parametrize("calls", [{1}, set()], ids=["once", "always"])
def test_m1_a_branch_that_moves_is_listed_again_or_given_up(
    served: Served, hub: Hub, target: Path, calls: set[int]
) -> None:
    """ModelScope names no commit, so its files may change between list and get."""
    number = iter(range(100))

    def move() -> None:
        hub.repositories[REPOSITORY].commit({"config.json": "x" * (100 + next(number))}, branch="main")

    hub.faults.add(Match(route="ms-file", path="config.json", calls=calls), Effect(then=move))
    if calls:
        run = fetch(served, target, source=f"modelscope://{REPOSITORY}")
        assert_whole(target, hub)
        assert run.progress.snapshot().attempt == 2
    else:
        with pytest.raises(IntegrityFault, match="keeps changing"):
            fetch(served, target, source=f"modelscope://{REPOSITORY}")
        assert not target.exists()


def test_m1_a_hugging_face_branch_that_moves_changes_nothing(served: Served, hub: Hub, target: Path) -> None:
    old = hub.repositories[REPOSITORY].refs["main"]
    hub.faults.add(
        Match(route="tree", calls={1}),
        Effect(then=lambda: hub.repositories[REPOSITORY].commit({"config.json": "moved"})),
    )
    run = fetch(served, target)
    assert run.revision == old
    assert (target / "config.json").read_bytes() == FILES["config.json"]


def test_m3_a_redirect_never_carries_the_token_to_another_host(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "HF_TOKEN").write_text("hf_secret")
    hub.create("org/private", FILES, private=True, tokens=["hf_secret"])
    fetch(served, target, source="hf://org/private", secret_dir=secret)
    assert_whole(target, hub, repository="org/private")
    assert {seen.authorization for seen in hub.requests.of("cdn")} == {""}


def test_m3_a_wrong_token_ends_at_once(served: Served, hub: Hub, target: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "token").write_text("wrong")
    hub.create("org/private", FILES, private=True, tokens=["hf_secret"])
    with pytest.raises(NotAuthorised) as caught:
        fetch(served, target, source="hf://org/private", secret_dir=secret)
    assert "wrong" not in str(caught.value)


def test_m3_a_secret_without_its_key_is_named(served: Served, target: Path, tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="no key token or HF_TOKEN"):
        fetch(served, target, secret_dir=tmp_path)


def test_m3_a_secret_of_authorities_alone_is_no_missing_token(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_text("")
    fetch(served, target, secret_dir=tmp_path)
    assert {seen.authorization for seen in hub.requests.of("resolve")} == {""}


def test_m2_a_link_that_fails_is_asked_for_anew(served: Served, hub: Hub, target: Path) -> None:
    """Ranges go to where a redirect led, and back to the source once that fails."""
    hub.faults.add(Match(route="resolve", calls={1}), Effect(redirect="http://127.0.0.1:1/gone"))
    hub.faults.add(Match(route="cdn", calls={3}), Effect(status=403))
    fetch(served, target, connections=1)
    assert_whole(target, hub)
    assert len(hub.requests.of("resolve", "model.safetensors", method="GET")) == 3


def test_many_files_and_many_connections(served: Served, hub: Hub, target: Path) -> None:
    files = {f"shard-{n}/part-{n}.bin": Pattern(size=1000 * n + 1, seed=n) for n in range(120)}
    hub.create("org/many", files)
    fetch(served, target, source="hf://org/many", connections=16)
    assert_whole(target, hub, repository="org/many")


def _abort_at(run: Run, count: int) -> None:
    while run.progress.moved < count:
        if run.error is not None:
            return
        time.sleep(0.001)
    run.abort(Interrupted("stopped by the test"))


def test_every_error_says_its_exit_code() -> None:
    codes = {kind.code for kind in PrewarmError.__subclasses__()}
    assert codes == {1, 2, 10, 11, 12, 13, 14, 15, 16, 17}
