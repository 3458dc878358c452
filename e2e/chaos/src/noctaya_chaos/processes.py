"""Processes and networks of Pods, seen from the machine that is their node: signals, closed ways."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from noctaya_scenarios.faults import processes_of

IPTABLES: Final = "iptables"


@contextmanager
def stopped(*pods: str) -> Iterator[None]:
    """SIGSTOP within the block: the Pods are there and silent, as behind a network that swallows packets."""
    processes = [process for pod in pods for process in processes_of(pod)]
    try:
        for process in processes:
            process.signal(signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            process.signal(signal.SIGCONT)


@contextmanager
def halting(*pods: str, silent: float, awake: float) -> Iterator[None]:
    """Within the block the Pods work by fits and starts, so that their answers come up to `silent` s late."""
    over = threading.Event()

    def alternate() -> None:
        while not over.is_set():
            with stopped(*pods):
                over.wait(silent)
            over.wait(awake)

    thread = threading.Thread(target=alternate, name="halting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def parted(pod: str, addresses: Sequence[str]) -> Iterator[None]:
    """Within the block no packet passes between a Pod and these addresses, on connections old or new."""
    inside = processes_of(pod)[0].pid
    rules = [(chain, way, each) for each in addresses for chain, way in (("INPUT", "-s"), ("OUTPUT", "-d"))]
    set_rules: list[tuple[str, str, str]] = []
    try:
        for rule in rules:
            _rule(inside, "-I", *rule)
            set_rules.append(rule)
        yield
    finally:
        for rule in set_rules:
            _rule(inside, "-D", *rule)


def _rule(pid: int, verb: str, chain: str, way: str, address: str) -> None:
    argv = ["nsenter", f"--net=/proc/{pid}/ns/net", IPTABLES, "-w", verb, chain, way, address, "-j", "DROP"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr.strip()}"
