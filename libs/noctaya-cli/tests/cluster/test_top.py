"""`noctaya top` on a terminal, while the API server comes and goes."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from noctaya_cli.main import app
from typer.testing import CliRunner

from .fake_api import FakeApi

pytestmark = pytest.mark.timeout(120)


PROGRAM = """
import signal
# Who runs the tests in the background ignores Ctrl-C, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
from noctaya_cli.main import app
app()
"""


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self._screen, inside = pty.openpty()
        self._process = subprocess.Popen(words, stdin=inside, stdout=inside, stderr=inside, env=environment())
        os.close(inside)
        self._seen = b""

    def await_text(self, text: str, *, within: float = 60.0) -> None:
        deadline = time.monotonic() + within
        while text.encode() not in self._seen:
            left = deadline - time.monotonic()
            assert left > 0, self._seen.decode(errors="replace")
            if select.select([self._screen], [], [], left)[0]:
                self._seen += os.read(self._screen, 65_536)

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        while self._process.poll() is None:
            if select.select([self._screen], [], [], 0.05)[0]:
                self._drain()
        return self._process.returncode

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._screen)

    def _drain(self) -> None:
        try:
            os.read(self._screen, 65_536)
        except OSError:  # the other side is closed: the program has ended
            self._process.wait()


def environment() -> dict[str, str]:
    return {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "24"}


def test_top_goes_on_with_what_it_knows_while_the_api_server_does_not_answer(
    api: FakeApi, tmp_path: Path
) -> None:
    file = str(api.kubeconfig(tmp_path))
    command = (sys.executable, "-c", PROGRAM, "top", "--interval", "0.5", "--kubeconfig", file)
    terminal = Terminal(*command)
    try:
        terminal.await_text("ScaledToZero")
        api.forbidden.add("/llmservices")
        terminal.await_text("as it was at that time; since then:")
        assert terminal.interrupt() == 0
    finally:
        terminal.close()


@pytest.mark.parametrize("interval", ["nan", "inf", "0", "-1", "soon"])
def test_an_interval_that_is_none_is_wrong_usage(api: FakeApi, tmp_path: Path, interval: str) -> None:
    words = ["top", f"--interval={interval}", "--kubeconfig", str(api.kubeconfig(tmp_path))]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, api.seen) == (2, [])
