"""Restart and reconnect delays."""

from noctaya_cli.backoff import ReconnectBackoff, RestartBackoff


def test_the_first_restart_is_immediate_then_10_s_doubling_to_5_min() -> None:
    backoff = RestartBackoff()
    assert [backoff.ended(ran=1) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.restarts == 8


def test_a_run_of_ten_minutes_forgets_the_crashes() -> None:
    backoff = RestartBackoff()
    for _ in range(5):
        backoff.ended(ran=1)
    assert backoff.ended(ran=600) == 0
    assert not backoff.crash_looping


def test_crash_looping_begins_with_the_second_quick_end() -> None:
    backoff = RestartBackoff()
    backoff.ended(ran=1)
    assert not backoff.crash_looping
    backoff.ended(ran=1)
    assert backoff.crash_looping


def test_reconnects_wait_2_to_60_s_and_start_over_after_a_clean_end() -> None:
    backoff = ReconnectBackoff()
    assert [backoff.failed() for _ in range(7)] == [2, 4, 8, 16, 32, 60, 60]
    assert backoff.ended_cleanly() == 2
    assert backoff.failed() == 2
