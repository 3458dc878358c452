"""Runs mypy --strict once over every package's sources and once a test folder (test modules share names)."""

import subprocess
import sys
from pathlib import Path

SOURCES = sorted(str(path) for path in Path().glob("*/*/src"))
EXTRA = ["e2e/bench", "e2e/demo", "e2e/model_servers/llamacpp", "e2e/checks", "proto/generate.py"]


def main() -> int:
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--explicit-package-bases"]
    code = 0
    for targets in [SOURCES, *([path] for path in EXTRA)]:
        code |= subprocess.run([*command, *targets], check=False).returncode
    return code


if __name__ == "__main__":
    sys.exit(main())
