import os

import pytest
from noctaya_bench.procfs import child_pids, cpu_seconds, parse_stat, parse_status, peak_rss_bytes, rss_bytes

STAT = (
    "4242 (nginx: worker (1) p) S 4241 4241 4241 0 -1 4194624 312 0 0 0 "
    "731 269 5 7 20 0 1 0 88210 12345344 1500 18446744073709551615 1 1 0 0 0 0 0"
)
STATUS = "Name:\tnginx\nVmPeak:\t   99000 kB\nVmHWM:\t   21504 kB\nVmRSS:\t   20480 kB\nThreads:\t1\n"


def test_stat_adds_user_and_system_ticks_whatever_the_command_is_called():
    assert parse_stat(STAT) == 731 + 269


def test_status_gives_bytes_of_the_line_asked_for():
    assert parse_status(STATUS, "VmRSS") == 20480 * 1024
    assert parse_status(STATUS, "VmHWM") == 21504 * 1024


def test_status_without_the_line_is_an_error():
    with pytest.raises(KeyError, match="VmSwap"):
        parse_status(STATUS, "VmSwap")


def test_own_process_can_be_read():
    own = os.getpid()
    assert cpu_seconds([own]) > 0
    assert cpu_seconds([own, own]) >= 2 * 0.0
    assert 1_000_000 < rss_bytes([own]) <= peak_rss_bytes(own)
    assert own not in child_pids(own)
