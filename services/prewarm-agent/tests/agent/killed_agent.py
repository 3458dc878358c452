"""The agent as a process that kills itself, with SIGKILL, at its n-th step on the disk.

Steps are the calls that change something. A write that is the last step is torn at a chosen byte, since a
kill may come at any.

    python killed_agent.py STEP BYTES download --source ... --target ...
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

WRITES = ("write", "pwrite")
CALLS = ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "ftruncate", "truncate", "open")


def main() -> None:
    step, torn_at = int(sys.argv[1]), int(sys.argv[2])
    lock = threading.Lock()
    count = 0

    def is_last() -> bool:
        nonlocal count
        with lock:
            count += 1
            return count == step

    def deadly(call: Callable[..., Any], *, tears: bool) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if not is_last():
                return call(*args, **kwargs)
            if tears:
                call(args[0], memoryview(args[1])[:torn_at], *args[2:])
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError("unreachable")

        return wrapped

    from noctaya_prewarm.cli import main as run  # imports write nothing that matters

    for name in WRITES:
        setattr(os, name, deadly(getattr(os, name), tears=True))
    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name), tears=False))
    run(sys.argv[3:])


if __name__ == "__main__":
    main()
