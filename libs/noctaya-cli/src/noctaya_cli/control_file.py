"""A small file that tells a gateway something: the addresses of its replicas, why a start is doomed."""

from collections.abc import Callable
from pathlib import Path

from noctaya_cli.machine import write_atomically


class ControlFile:
    """The newest text wins. What a full disk refuses is kept and tried again by `retry`.

    `failed` is told the first error of a row.
    """

    def __init__(self, path: Path, *, failed: Callable[[OSError], None]) -> None:
        self.path = path
        self._failed = failed
        self._failing = False
        self._waiting: str | None = None

    def tell(self, text: str) -> None:
        """Replace the content as a whole, now or as soon as the disk allows."""
        self._waiting = text
        self.retry()

    def retry(self) -> None:
        """Try again to write what couldn't be written; nothing when there is nothing."""
        if self._waiting is None:
            return
        try:
            write_atomically(self.path, self._waiting)
        except OSError as error:
            if not self._failing:
                self._failing = True
                self._failed(error)
        else:
            self._waiting = None
            self._failing = False
