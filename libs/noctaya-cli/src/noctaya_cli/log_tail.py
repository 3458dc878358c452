"""Log files of processes: their last line, new lines for `--logs`, and a bound on their size."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

TAIL = 8_192
POLL = 0.2
CHUNK = 65_536
LINE_LIMIT = 1 << 20
"""Bytes of a line that is kept until its end comes."""
SIZE_LIMIT = 64 << 20
"""Bytes after which a log is moved aside; with the one before it, that bounds what a process can fill."""


def last_line(path: Path) -> str:
    """The last line that isn't blank, the message alone of a structured one; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return message_of(lines[-1]) if lines else ""


def message_of(line: str) -> str:
    """The `msg` of a line of JSON; any other line as it is."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return str(record["msg"]) if isinstance(record, dict) and "msg" in record else line


def bound_size(path: Path, *, limit: int = SIZE_LIMIT) -> None:
    """Move the content aside (to `.1`) and empty the file when it is larger than `limit`.

    The process goes on writing at the new end, since it appends; what it writes in the instant between is
    lost. So is all of it on a disk that has no room for a copy.
    """
    aside = path.with_name(f"{path.name}.1")
    try:
        if path.stat().st_size <= limit:
            return
    except FileNotFoundError:
        return
    try:
        shutil.copyfile(path, aside)
    except OSError:
        aside.unlink(missing_ok=True)
    with path.open("r+b") as file:
        file.truncate(0)


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
            delay = 0.0 if self.read() else POLL  # a flood leaves time for everything else
            await asyncio.sleep(delay)

    def read(self) -> bool:
        """Show what has been appended; False when there was nothing new."""
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._offset:  # emptied, see bound_size
                    self._offset = 0
                file.seek(self._offset)
                data = file.read(CHUNK)
        except FileNotFoundError:
            return False
        self._offset += len(data)
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > LINE_LIMIT:
            lines.append(self._partial)
            self._partial = b""
        for line in lines:
            self._show(line.decode(errors="replace").rstrip("\r"))
        return bool(data)
