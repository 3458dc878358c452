"""A signal that ends a command ends it as an error would: what is to be undone at the end is undone.

The Kubernetes client keeps certificate and private key of a kubeconfig in files of their own and removes them
at exit. A closed terminal, or a script that gives up on a command, would leave them behind.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Final, NoReturn

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


class OrderlyEnd:
    """A context manager in which SIGTERM and SIGHUP raise SystemExit, with the exit code shells give them.

    Whoever ignores one of them, as nohup does, goes on ignoring it.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # no other one may
        for number in SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._before[number] = signal.signal(number, _end)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
