"""`python -m noctaya_docs site | links | pictures`: build the site, check links, draw the diagrams."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from noctaya_docs import pictures
from noctaya_docs.links import fault_of, links_of
from noctaya_docs.pages import REPOSITORY, markdown_files
from noctaya_docs.site import SiteFault, build

OUTPUT = REPOSITORY / "build" / "docs"


def main() -> int:
    """The command; exit code 1 when something is wrong with the documentation."""
    parser = argparse.ArgumentParser(prog="noctaya_docs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    site = commands.add_parser("site", help="build the site; a warning is an error")
    site.add_argument("--output", type=Path, default=OUTPUT, help="replaced; default: build/docs")
    commands.add_parser("links", help="check links among the files of the repository")
    drawn = commands.add_parser("pictures", help="draw the diagrams in docs/pictures")
    drawn.add_argument("--check", action="store_true", help="compare instead of writing")
    wanted = parser.parse_args()
    if wanted.command == "pictures":
        return draw(check=wanted.check)
    if wanted.command == "links":
        faults = [fault for page in markdown_files() for link in links_of(page) if (fault := fault_of(link))]
        print("\n".join(faults) or "every link leads somewhere", file=sys.stderr if faults else sys.stdout)
        return 1 if faults else 0
    output: Path = wanted.output.absolute()
    try:
        pages = build(output, work=output.with_name(f"{output.name}-source"))
    except SiteFault as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{pages} pages: {output / 'README.html'}")
    return 0


def draw(*, check: bool) -> int:
    """Write the diagrams, or say which are stale."""
    if not check:
        pictures.write()
        return 0
    old = pictures.stale()
    if old:
        print(f"{', '.join(old)}: not what python -m noctaya_docs pictures draws", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
