"""`python -m noctaya_charts write|check`: bring the generated files of the charts up to date, or say which
are not."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from noctaya_charts.generated import REPOSITORY, ChartFault, generated_files


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all is as it should be, 1 when `check` found a difference or a chart can't be read."""
    parser = argparse.ArgumentParser(prog="noctaya-charts", description="Generated files of the Helm charts.")
    parser.add_argument("action", choices=("write", "check"))
    action = parser.parse_args(arguments).action
    code = 0
    try:
        for path, text in generated_files():
            old = path.read_text(encoding="utf-8") if path.exists() else ""
            if old == text:
                continue
            if action == "write":
                path.write_text(text, encoding="utf-8")
                print(f"wrote {path.relative_to(REPOSITORY)}")
            else:
                code = 1
                sys.stderr.writelines(_difference(path, old, text))
    except ChartFault as fault:
        print(fault, file=sys.stderr)
        return 1
    if code:
        print("generated files are stale; run: python -m noctaya_charts write", file=sys.stderr)
    return code


def _difference(path: Path, old: str, new: str) -> list[str]:
    name = str(path.relative_to(REPOSITORY))
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        fromfile=name,
        tofile=f"{name} (generated)",
    )
    return list(lines)


if __name__ == "__main__":
    sys.exit(main())
