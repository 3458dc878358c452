"""Guard: a tiny process between `noctaya` and one child, so that no crash of `noctaya` leaves the child
behind.

A killed parent (kill -9, out of memory) can't clean up. The kernel does close its end of a socket, though,
and this process waits on the other end. It is run as a script, with the standard library only and without
site-packages, because it is started once for every child process.

    guard.py FD GRACE COMMAND [ARGUMENT...]

FD is one end of a socket pair. `noctaya` writes `T` (SIGTERM to the child) or `K` (SIGKILL to everything
the child started) and reads lines: `pid N`, then one of `exit CODE`, `signal N` or `failed TEXT`. End of
file on FD means that `noctaya` is gone: SIGTERM to the child's process group, then after GRACE seconds
SIGKILL to everything.

When the child has ended, whatever it left running is killed, as a container runtime does. On Linux the
guard is the subreaper of everything below it, so that a grandchild in a session of its own is found too,
and the child dies with the guard (PR_SET_PDEATHSIG).
"""

import contextlib
import os
import select
import signal
import sys
import time
from types import FrameType

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_EXECUTE = 127


class Guard:
    """One child and everything it starts; single-threaded, driven by one poll loop."""

    def __init__(self, control: int, *, grace: float) -> None:
        self._control = control
        self._grace = grace
        self._child = 0
        self._status: int | None = None
        self._deadline: float | None = None
        self._wake_read, wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(wake_write, False)
        os.set_inheritable(control, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, wake)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._orphaned_by_signal)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def run(self, command: list[str]) -> None:
        """Start the child and stay until it and all it started are gone."""
        failure_read, failure_write = os.pipe()
        guard = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            execute(command, failure=failure_write, guard=guard)
        os.close(failure_write)
        failure = os.read(failure_read, 4096).decode(errors="replace")
        if failure:
            os.waitpid(self._child, 0)
            self._tell(f"failed {failure}")
            return
        self._tell(f"pid {self._child}")
        self._watch()
        self._kill_everything()
        status = self._status or 0
        self._tell(
            f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        )

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while self._status is None:
            if self._deadline is not None and time.monotonic() >= self._deadline:
                return self._kill_everything()
            timeout = None if self._deadline is None else max(0.0, self._deadline - time.monotonic()) * 1000
            ready = {fd for fd, _ in poll.poll(timeout)}
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            if self._control in ready and not self._obey():
                poll.unregister(self._control)
            self._reap()
        return None

    def _obey(self) -> bool:
        """Carry out what `noctaya` wrote; False once it is gone."""
        try:
            orders = os.read(self._control, 4096)
        except ConnectionError:
            orders = b""
        if not orders:
            self._orphaned()
            return False
        if b"K" in orders:
            self._kill_everything()
        elif b"T" in orders:
            send(self._child, signal.SIGTERM)
        return True

    def _orphaned_by_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._orphaned()

    def _orphaned(self) -> None:
        if self._deadline is None and self._status is None:
            self._deadline = time.monotonic() + self._grace
            send_group(self._child, signal.SIGTERM)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._child:
                    self._status = status

    def _kill_everything(self) -> None:
        """SIGKILL to the group, then to every orphan that arrives here, until none is left."""
        send_group(self._child, signal.SIGKILL)
        while True:
            for pid in children():
                send(pid, signal.SIGKILL)
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            if pid == self._child:
                self._status = status

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):  # nobody is left to be told
            os.write(self._control, (line + "\n").encode())


def execute(command: list[str], *, failure: int, guard: int) -> None:
    """Become the command (in the forked child); on failure write why to `failure` and exit."""
    try:
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == guard:  # else the guard died before the kernel knew to tell us
            os.execvp(command[0], command)  # noqa: S606 - running the given command is the purpose
    except OSError as error:
        os.write(failure, (error.strerror or str(error)).encode())
    os._exit(CANNOT_EXECUTE)


def children() -> list[int]:
    """Direct children of this process, orphans it adopted included; empty where /proc doesn't tell."""
    found: list[int] = []
    me = str(os.getpid())
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs a third of this process's start
            if not name.isdigit():
                continue
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
                fields = stat.read().rpartition(b")")[2].split()
                if fields[1].decode() == me:
                    found.append(int(name))
    return found


def send(pid: int, number: int) -> None:
    """Signal one process that may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def send_group(pid: int, number: int) -> None:
    """Signal a process group that may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def prctl(option: int, value: int) -> None:
    """prctl(2) where there is one (Linux); elsewhere process groups and the control socket have to do."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - absent from some builds of other platforms

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def wake(_number: int, _frame: FrameType | None) -> None:
    """SIGCHLD only has to end the poll; the wake-up pipe does."""


def main() -> None:
    """Entry point of the script."""
    Guard(int(sys.argv[1]), grace=float(sys.argv[2])).run(sys.argv[3:])


if __name__ == "__main__":
    main()
