"""An end in order: what is begun to be cleared away is cleared away, however often Ctrl-C is pressed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def quiet_signals() -> Iterator[None]:
    """SIGINT and SIGTERM do nothing within the block."""
    before = [signal.signal(number, signal.SIG_IGN) for number in NUMBERS]
    try:
        yield
    finally:
        for number, handler in zip(NUMBERS, before, strict=True):
            signal.signal(number, handler)
