"""What a signal does to a command, and what it leaves as it was."""

import os
import signal
import subprocess
import sys

import pytest
from noctaya_cli.ending import SIGNALS, OrderlyEnd

PROGRAM = """
import atexit, os, signal, sys
from noctaya_cli.ending import OrderlyEnd
signal.signal(int(sys.argv[1]), signal.SIG_DFL)  # who started the tests may ignore it
atexit.register(print, "put away", flush=True)
with OrderlyEnd():
    os.kill(os.getpid(), int(sys.argv[1]))
    signal.pause()
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_to_be_undone_at_exit_is_undone(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(number))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (128 + number, "put away\n"), done.stderr


def test_whoever_ignores_a_signal_goes_on_doing_so_and_handlers_come_back() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with OrderlyEnd():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before[0])
        signal.signal(signal.SIGTERM, before[1])
