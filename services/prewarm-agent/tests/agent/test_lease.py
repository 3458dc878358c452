"""Two agents on one claim: one works, the other waits, and a silent one loses its place."""

import json
import os
import threading
import time
from pathlib import Path

import pytest
from noctaya_model_hub import Effect, Hub, Match, Served
from noctaya_prewarm.download import download
from noctaya_prewarm.errors import BadSettings, Busy, Interrupted, PrewarmError
from noctaya_prewarm.lease import hold, is_held
from noctaya_prewarm.progress import State
from noctaya_prewarm.run import Run

from .kit import SOURCE, assert_whole, fetch, settings


def stale_lock(target: Path, number: int = 1, *, host: str = "elsewhere", pid: int = 1) -> Path:
    """What a killed agent on another machine leaves."""
    lock = target.with_name(f"{target.name}.lock.{number}")
    holder = {"id": "ab", "host": host, "pid": pid, "space": "another", "started": "1"}
    lock.write_text(f"{json.dumps(holder)}\n000000000007\n")
    return lock


def locks(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.glob("*.lock.*"))


def test_a_lease_is_a_file_while_it_is_held(target: Path) -> None:
    with hold(Run(settings()), target):
        assert is_held(target)
        assert locks(target) == [f"{target.name}.lock.1"]
    assert not is_held(target)


def test_a_lease_of_a_lost_agent_is_taken_over_after_its_length(target: Path) -> None:
    stale_lock(target, 3)
    began = time.monotonic()
    with hold(Run(settings(lease=1.0)), target):
        assert time.monotonic() - began >= 1.0
        assert locks(target) == [f"{target.name}.lock.4"]
    assert locks(target) == []


def test_a_lease_of_a_process_that_died_here_is_taken_over_at_once(target: Path) -> None:
    run = Run(settings(lease=60.0))
    with hold(run, target):
        lock = target.with_name(f"{target.name}.lock.1")
        content = lock.read_text()
    found = json.loads(content.splitlines()[0])
    found["started"] = "1"
    lock.write_text(f"{json.dumps(found)}\n000000000001\n")
    began = time.monotonic()
    with hold(Run(settings(lease=60.0)), target):
        assert time.monotonic() - began < 30


def test_a_holder_that_gives_signs_of_life_keeps_its_lease(target: Path) -> None:
    holder, waiter = Run(settings(lease=1.0)), Run(settings(lease=1.0, deadline=3.0))
    with hold(holder, target) as lease:
        with pytest.raises(Busy, match="still works on"), hold(waiter, target):
            pytest.fail("two holders")
        lease.check()
        assert waiter.progress.state is State.WAITING


def test_a_holder_learns_that_it_was_replaced_before_it_writes_on(target: Path) -> None:
    run = Run(settings(lease=600.0))
    with hold(run, target) as lease:
        stale_lock(target, 2)
        lease.check()  # freshly renewed, it has no doubts
        with pytest.raises(Busy, match="taken over"):
            lease.renew()


def test_the_keeper_ends_a_run_that_was_replaced(target: Path) -> None:
    run = Run(settings(lease=1.0))
    with hold(run, target):
        stale_lock(target, 2)
        with pytest.raises(Busy, match="taken over"):
            while True:
                run.pause(0.05)
    assert locks(target) == [f"{target.name}.lock.2"]


def test_a_lock_with_nonsense_in_it_expires_like_any_other(target: Path) -> None:
    target.with_name(f"{target.name}.lock.1").write_bytes(b"\xff\x00 {")
    with hold(Run(settings(lease=1.0)), target):
        assert locks(target) == [f"{target.name}.lock.2"]


def test_waiting_ends_with_the_run(target: Path) -> None:
    stale_lock(target)
    run = Run(settings(lease=60.0))
    timer = threading.Timer(0.2, lambda: run.abort(Interrupted("stop")))
    timer.start()
    with pytest.raises(Interrupted), hold(run, target):
        pytest.fail("the lease was another's")
    timer.join()


def test_a_parent_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PrewarmError, match="file"), hold(Run(settings()), tmp_path / "file" / "x" / "model"):
        pytest.fail("no directory can be there")


def test_a_directory_that_may_not_be_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    tmp_path.chmod(0o755)
    for above in tmp_path.parents[:2]:
        above.chmod(0o755)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(BadSettings, match="fsGroup"), hold(Run(settings()), folder / "model"):
            pytest.fail("not writable")
    finally:
        if root:
            os.seteuid(0)


def test_two_agents_at_once_fetch_a_model_once(served: Served, hub: Hub, target: Path) -> None:
    hub.faults.add(Match(route="cdn"), Effect(delay=0.2))
    runs = [Run(settings(served)) for _ in range(2)]
    errors: list[PrewarmError] = []

    def work(run: Run) -> None:
        try:
            download(run, source=SOURCE, target=target)
        except PrewarmError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert errors == []
    assert_whole(target, hub)
    assert len(hub.requests.of("tree")) == 1
    assert all(run.progress.snapshot().bytesDone == run.progress.snapshot().bytesTotal for run in runs)


def test_an_agent_that_was_replaced_stops_and_the_other_one_ends_it(
    served: Served, hub: Hub, target: Path
) -> None:
    hub.faults.add(Match(route="cdn"), Effect(stall_after=500_000))
    run = Run(settings(served, lease=1.0, stall_timeout=30.0))
    failure: list[PrewarmError] = []

    def work() -> None:
        try:
            download(run, source=SOURCE, target=target)
        except PrewarmError as error:
            failure.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while run.progress.moved < 500_000:
        time.sleep(0.01)
    stale_lock(target, 2)
    thread.join(60)
    assert [type(error) for error in failure] == [Busy]
    hub.faults.clear()
    fetch(served, target, lease=1.0)
    assert_whole(target, hub)
