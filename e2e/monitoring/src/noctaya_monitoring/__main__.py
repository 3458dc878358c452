"""Writes examples/observability/dashboards: `python -m noctaya_monitoring --output DIR [--check]`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from noctaya_monitoring.dashboards import ALL


def main() -> int:
    """Write each dashboard, or compare; exit code 1 when a file differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    different = False
    for dashboard in ALL:
        file = wanted.output / f"{dashboard.uid}.json"
        text = json.dumps(dashboard.render(), indent=2) + "\n"
        if not wanted.check:
            file.write_text(text, encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != text:
            print(f"{file} is not what noctaya_monitoring.dashboards gives", file=sys.stderr)
            different = True
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
