"""The stub as a process on a free port, for the tests of the kit's client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from noctaya_scenarios.chat import Client


@contextmanager
def stub(**environment: str) -> Iterator[Client]:
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
