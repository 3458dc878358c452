"""Become another program that dies with the process that started this one.

    bound_exec.py PARENT COMMAND [ARGUMENT...]

Test runs get killed; etcd and an API server must not stay behind for that. On Linux the kernel sends SIGKILL
to a process whose parent died, if the process asked for it, and the wish survives exec. This small script
asks and then turns into the program, so its pid is the program's. It is a script, not a `preexec_fn`, because
forking Python with threads running is no safe thing. Elsewhere than on Linux there is no such wish, and only
an orderly end of the parent stops its children.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask, look whether the parent is still there, become the program."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
