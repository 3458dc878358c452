"""A stub on this machine for the tests of the kit's client.

No event loop is current outside async tests: looptime's plugin asks for the current loop before every test.
On Python 3.11 the first such question makes one that nobody closes, unless it was said that there is none.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from noctaya_scenarios.chat import Client

asyncio.set_event_loop(None)


@pytest.fixture
def stub() -> Callable[..., AbstractContextManager[Client]]:
    """Starts a stub with an environment; a client of it."""
    return running_stub


@contextmanager
def running_stub(**environment: str) -> Iterator[Client]:
    """A client of a stub that listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "noctaya_model_stub", "--port", "0"],
        env={**os.environ, "STUB_TOKEN_DELAY": "10ms", "HOSTNAME": "pod-a", **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"on port (\d+)", said)
            assert found, said
            yield Client("127.0.0.1", int(found[1]))
        finally:
            process.terminate()
