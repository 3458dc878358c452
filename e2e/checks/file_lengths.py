"""Fails when a Python file outgrows 400 lines: then it holds more than one idea."""

import subprocess
import sys
from pathlib import Path

LIMIT = 400
GENERATED = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")


def tracked_python_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "*.py"], capture_output=True, text=True, check=True).stdout
    return [
        Path(line) for line in listing.splitlines() if not line.endswith(GENERATED) and Path(line).exists()
    ]


def main() -> int:
    long = [
        (path, lines)
        for path in tracked_python_files()
        if (lines := len(path.read_text().splitlines())) > LIMIT
    ]
    for path, lines in long:
        print(f"{path}: {lines} lines, the limit is {LIMIT}: split it by idea", file=sys.stderr)
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
