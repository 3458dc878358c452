"""The end of a log file: the last line for an error message, new lines for `--logs`."""

import asyncio
from collections.abc import Callable
from pathlib import Path

TAIL = 8_192
POLL = 0.2
CHUNK = 65_536


def last_line(path: Path) -> str:
    """The last line that isn't blank; empty when there is none or the file can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


class LogFollower:
    """Calls `show(line)` for every line that is appended to a file, from its beginning."""

    def __init__(self, path: Path, *, show: Callable[[str], None]) -> None:
        self._path = path
        self._show = show
        self._offset = 0
        self._partial = b""

    async def run(self) -> None:
        """Follow until cancelled. A file that doesn't exist yet is waited for."""
        while True:
            if not self.read():
                await asyncio.sleep(POLL)

    def read(self) -> bool:
        """Show what has been appended; False when there was nothing new."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(CHUNK)
        except FileNotFoundError:
            return False
        self._offset += len(data)
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._show(line.decode(errors="replace").rstrip("\r"))
        return bool(data)
