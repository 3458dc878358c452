"""The inside of a machine of the cluster: makes its namespaces, or joins them and becomes a program.

    enter.py hold PLAN                          make the namespaces, say `ready` on stdout, stay
    enter.py exec PLAN PID COMMAND [ARGUMENT]   join those of PID, become COMMAND

PLAN is a JSON object: `hostname`, `cgroups` (folders to join, one a hierarchy), `leaf` (where to live below
each), `mounts` ([source, target, filesystem, options]), `state` (a folder that stays what it is).

A process is in its cgroup before it does anything else, and the cgroup is how `down` finds it: a process that
comes too late finds no cgroup and ends. Python has setns and unshare since 3.12 only, hence ctypes. It is a
script that imports little, because it is run a hundred times.
"""

import ctypes
import json
import os
import signal
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20
JOINED = ("cgroup", "uts", "net", "mnt")
"""The mount namespace last: the others are found in the /proc of the outside."""

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Do what the command line says."""
    mode, plan = sys.argv[1], json.loads(sys.argv[2])
    os.chdir("/")
    if mode == "hold":
        hold(plan)
    else:
        become(plan, int(sys.argv[3]), sys.argv[4:])


def hold(plan: dict) -> None:  # type: ignore[type-arg]
    """Make the namespaces and keep them until killed."""
    join_cgroups(plan["cgroups"])
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWNET), "unshare")
    # Below the root of a cgroup namespace v2 wants processes in leaves only; v1 does not mind.
    join_cgroups([os.path.join(folder, plan["leaf"]) for folder in plan["cgroups"]])  # noqa: PTH118
    name = plan["hostname"].encode()
    check(libc.sethostname(name, len(name)), "sethostname")
    # The machine's later mounts reach us, ours reach nobody; inside, kubelet's reach containers.
    mount("none", "/", None, MS_REC | MS_SLAVE)
    mount("none", "/", None, MS_REC | MS_SHARED)
    state = os.open(plan["state"], os.O_PATH)
    for source, target, kind, options in plan["mounts"]:
        if kind == "bind":
            mount(source, made(target), None, MS_BIND)
        elif kind == "overlay":  # what is written there stays in memory, below /run
            upper, work = (made(f"/run/noctaya-over{target}/{name}") for name in ("upper", "work"))
            mount(kind, target, kind, 0, f"lowerdir={target},upperdir={upper},workdir={work}")
        else:
            mount(source, made(target), kind, 0, options)
        if not os.path.samestat(os.fstat(state), os.stat(made(plan["state"]))):  # noqa: PTH116
            mount(f"/proc/self/fd/{state}", plan["state"], None, MS_BIND)  # it was covered: show it again
    os.close(state)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    print("ready", flush=True)
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    while True:
        signal.pause()


def become(plan: dict, pid: int, command: list) -> None:  # type: ignore[type-arg]
    """Join the namespaces of a process, become a program."""
    join_cgroups([os.path.join(folder, plan["leaf"]) for folder in plan["cgroups"]])  # noqa: PTH118
    namespaces = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in JOINED]
    for kind, namespace in zip(JOINED, namespaces, strict=True):
        check(libc.setns(namespace, 0), f"setns {kind}")
        os.close(namespace)
    os.chdir("/")
    os.execvp(command[0], command)


def join_cgroups(folders: list) -> None:  # type: ignore[type-arg]
    """Move this process; OSError when one is gone, which is how a cluster that is being removed says so."""
    for folder in folders:
        with open(os.path.join(folder, "cgroup.procs"), "w") as procs:  # noqa: PTH118, PTH123
            procs.write("0")


def made(path: str) -> str:
    """The path, as a folder if there was nothing."""
    if not os.path.exists(path):  # noqa: PTH110
        os.makedirs(path)  # noqa: PTH103
    return path


def mount(source: str, target: str, kind: "str | None", flags: int, options: str = "") -> None:
    """mount(2)."""
    done = libc.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, flags, options.encode() or None
    )
    check(done, f"mount {source} at {target}")


def check(result: int, what: str) -> None:
    """Raise OSError for a failed call."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


if __name__ == "__main__":
    main()
