"""`python -m noctaya_parts build | list | lock`: programs of other projects, built from pinned Go modules.

Exit 1: a part could not be built. Exit 2: there is no such part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .build import ensure
from .catalogue import GROUPS, UnknownPart
from .gotool import BuildError, Go
from .lock import write_lock


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse_arguments(argv)
    try:
        match options.command:
            case "build":
                for path in ensure(*options.names, report=_say).values():
                    print(path)
            case "lock":
                lock(options.groups)
            case _:
                show()
    except UnknownPart as error:
        print(f"noctaya-parts: {error}", file=sys.stderr)
        return 2
    except BuildError as error:
        print(f"noctaya-parts: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="noctaya-parts", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build what is not in the cache, print the paths")
    build.add_argument("names", nargs="*", metavar="NAME", help="all when none is named")
    commands.add_parser("list", help="every part, its module, whether it is built")
    relock = commands.add_parser("lock", help="make locks/ anew after a change of versions.py")
    relock.add_argument("groups", nargs="*", metavar="GROUP", help="all when none is named")
    return parser.parse_args(argv)


def lock(names: Sequence[str]) -> None:
    """Make lock files anew."""
    known = {group.name: group for group in GROUPS if not group.local}
    if unknown := sorted(set(names) - set(known)):
        raise UnknownPart(f"there is no group {', '.join(unknown)}; there are {', '.join(known)}")
    go = Go()
    for name in names or known:
        _say(f"{name}: resolving modules")
        write_lock(known[name], go)


def show() -> None:
    """A table of all parts."""
    for group in GROUPS:
        for part in group.parts:
            built = (group.folder / part.name).exists()
            modules = ", ".join(module.pinned for module in group.modules)
            print(f"{part.name:<24} {'built' if built else 'not built':<10} {modules}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
