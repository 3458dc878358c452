"""CPU time and memory of processes, read from /proc (Linux).

utime + stime of /proc/PID/stat is what the kernel charged the process, so it stays comparable when other
programs share the cores; its resolution is one clock tick (10 ms on common kernels).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12  # fields 14 and 15 of proc(5), counted from the state, which is field 3


def parse_stat(text: str) -> int:
    """utime + stime in clock ticks from the text of /proc/PID/stat."""
    fields = text[text.rindex(")") + 1 :].split()  # the command name may hold spaces and parentheses
    return int(fields[_UTIME]) + int(fields[_STIME])


def parse_status(text: str, key: str) -> int:
    """Bytes of a `kB` line such as VmRSS or VmHWM from the text of /proc/PID/status; KeyError when absent."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    raise KeyError(key)


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU seconds (user + system) the processes have used since they began."""
    ticks = sum(parse_stat(Path(f"/proc/{pid}/stat").read_text()) for pid in pids)
    return ticks / CLOCK_TICKS


def rss_bytes(pids: Iterable[int]) -> int:
    """Resident memory of the processes now."""
    return sum(parse_status(Path(f"/proc/{pid}/status").read_text(), "VmRSS") for pid in pids)


def peak_rss_bytes(pid: int) -> int:
    """Highest resident memory of the process since it began or since `reset_peak`."""
    return parse_status(Path(f"/proc/{pid}/status").read_text(), "VmHWM")


def reset_peak(pid: int) -> None:
    """Let `peak_rss_bytes` count from now on (proc(5): 5 written to clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def child_pids(pid: int) -> tuple[int, ...]:
    """Direct children of the process's main thread, such as nginx workers."""
    return tuple(int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
