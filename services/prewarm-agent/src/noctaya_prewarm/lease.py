"""One agent at a time works on a target, on any file system that creates files exclusively.

Advisory locks are unreliable on network file systems, and a lock file alone outlives its holder. So the
holder of `<target>.lock.<n>` rewrites it every few seconds. Whoever waits watches the content by its own
clock, so clocks need not agree: a file that stands still for the length of a lease has lost its holder, and
the one who manages to create number n+1 is the next holder. Numbers only grow while files are there; no file
is ever renamed or rewritten by another, so two takers can't both win.

A holder that was stopped for longer than its lease learns that it lost the target before it writes on.
"""

import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from noctaya_prewarm.disk import explained
from noctaya_prewarm.errors import Busy
from noctaya_prewarm.progress import State
from noctaya_prewarm.run import Run

_BEATS = 6
# A holder doubts itself before anybody else may doubt it.
_DOUBT = 0.6
_POLL = 1.0

logger = logging.getLogger(__name__)


class Lease:
    """A held lease; made by `hold`."""

    def __init__(
        self, path: Path, *, number: int, length: float, clock: Callable[[], float], holder: str
    ) -> None:
        self._target = path
        self._file = _lock_file(path, number)
        self._number = number
        self._length = length
        self._clock = clock
        self._holder = holder
        self._beat = 0
        self._sure = clock()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Before something is written: is the target still ours? Costs a look at the clock, mostly.

        Raises:
            Busy: another agent took it over, or the lease can't be renewed in time.
        """
        if self._clock() - self._sure > _DOUBT * self._length:
            self.renew()

    def renew(self) -> None:
        """Give a sign of life. Errors as `check`."""
        with self._lock:
            try:
                mine = _read(self._file).startswith(self._holder) and _numbers(self._target)[-1:] == [
                    self._number
                ]
                if mine:
                    self._beat += 1
                    _write(self._file, _content(self._holder, self._beat))
                    self._sure = self._clock()
                    return
            except OSError as error:
                if self._clock() - self._sure < self._length:
                    logger.warning("the lease can't be renewed", extra={"why": str(error)})
                    return
                raise Busy(f"the lease of {self._target} can't be renewed: {error}") from error
        raise Busy(f"another agent has taken over {self._target}, since this one was silent for too long")

    def release(self) -> None:
        """Let the next one in."""
        with self._lock, suppress(OSError):
            if _read(self._file).startswith(self._holder):
                self._file.unlink()


@contextmanager
def hold(run: Run, target: Path) -> Iterator[Lease]:
    """Wait until `target` is ours, keep it while the body runs, and give it back.

    Raises:
        Busy: the deadline passed while another agent held it.
        BadSettings, NoSpace: the directory of the target can't be written.
        PrewarmError: the run was aborted.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lease = _acquire(run, target)
    except OSError as error:
        raise explained(error, target.parent) from error
    ended = threading.Event()
    keeper = threading.Thread(target=_keep, args=(run, lease, ended), name="lease", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        ended.set()
        keeper.join(run.settings.lease)
        lease.release()


def is_held(target: Path) -> bool:
    """Whether somebody holds, or held and never gave back, the lease of `target`."""
    return bool(_numbers(target))


def _keep(run: Run, lease: Lease, ended: threading.Event) -> None:
    while not ended.wait(run.settings.lease / _BEATS):
        try:
            lease.renew()
        except Busy as error:
            run.abort(error)
            return


def _acquire(run: Run, target: Path) -> Lease:
    holder = _describe_self()
    seen: tuple[int, str] | None = None
    since = run.clock()
    while True:
        numbers = _numbers(target)
        last = numbers[-1] if numbers else 0
        content = _read(_lock_file(target, last)) if last else ""
        if (last, content) != seen:
            seen, since = (last, content), run.clock()
        stale = last and (run.clock() - since >= run.settings.lease or _is_dead(content))
        if not last or stale:
            lease = _try_create(run, target, last + 1, holder)
            if lease is not None:
                for number in numbers:
                    _lock_file(target, number).unlink(missing_ok=True)
                if stale:
                    logger.warning("took over from an agent that is gone", extra={"holder": _who(content)})
                return lease
            continue
        _wait_for(run, target, content)


def _wait_for(run: Run, target: Path, content: str) -> None:
    if run.progress.state is not State.WAITING:
        run.progress.enter(State.WAITING)
        logger.info(
            "another agent works on the target", extra={"target": str(target), "holder": _who(content)}
        )
    if run.remaining <= _POLL:
        raise Busy(f"another agent ({_who(content)}) still works on {target}; the deadline has passed")
    run.pause(min(_POLL, run.settings.lease / 10))


def _try_create(run: Run, target: Path, number: int, holder: str) -> Lease | None:
    path = _lock_file(target, number)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o664)
    except FileExistsError:
        return None
    with os.fdopen(handle, "wb") as file:
        file.write(_content(holder, 0))
    if _numbers(target)[-1] != number:
        path.unlink(missing_ok=True)
        return None
    return Lease(target, number=number, length=run.settings.lease, clock=run.clock, holder=holder)


def _lock_file(target: Path, number: int) -> Path:
    return target.with_name(f"{target.name}.lock.{number}")


def _numbers(target: Path) -> list[int]:
    prefix = f"{target.name}.lock."
    ends = (name[len(prefix) :] for name in os.listdir(target.parent) if name.startswith(prefix))  # noqa: PTH208
    return sorted(int(end) for end in ends if end.isascii() and end.isdigit())


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _write(path: Path, content: bytes) -> None:
    # In place and of one length: an opened and closed file is what network file systems show to others.
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.pwrite(handle, content, 0)
    finally:
        os.close(handle)


def _content(holder: str, beat: int) -> bytes:
    return f"{holder}\n{beat:012d}\n".encode()


def _describe_self() -> str:
    return json.dumps(
        {
            "id": secrets.token_hex(8),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "space": _process_space(),
            "started": _start_time(os.getpid()),
        }
    )


def _who(content: str) -> str:
    try:
        found = json.loads(content.split("\n", 1)[0])
        return f"process {int(found['pid'])} on {str(found['host'])[:64]}"
    except (ValueError, KeyError, TypeError):
        return "unknown"


def _is_dead(content: str) -> bool:
    """Whether the holder was a process that could be seen from here, and is no more."""
    try:
        found = json.loads(content.split("\n", 1)[0])
        here = found["space"] == _process_space() != ""
        return bool(here and _start_time(int(found["pid"])) != found["started"])
    except (ValueError, KeyError, TypeError):
        return False


def _process_space() -> str:
    """Names the set of processes whose ids mean the same: this boot's and this PID namespace's."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """When a process began, in clock ticks since boot; "" when there is none (or no /proc)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in {"Z", "X"} else fields[19]
