"""Runs mypy --strict over every package of the workspace and over the scripts that belong to none."""

import subprocess
import sys
import tomllib
from pathlib import Path

SCRIPTS = (
    "e2e/checks/file_lengths.py",
    "e2e/checks/pins.py",
    "e2e/checks/static_types.py",
    "docs/pictures/dashboards.py",
    "docs/pictures/draw.py",
    "proto/generate.py",
    "services/image/imports.py",
    "services/image/requirements.py",
    "services/image/strip.py",
)


def packages() -> list[str]:
    """Import names of all distributions, as their build configuration says."""
    names = []
    for project in sorted(Path().glob("*/**/pyproject.toml")):
        if ".tox" in project.parts or ".venv" in project.parts:
            continue
        build = tomllib.loads(project.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
        names += [Path(package).name for package in build["packages"]]
    return names


def main() -> int:
    """All packages in one run, then each script; non-zero when any has an error."""
    mypy = [sys.executable, "-m", "mypy"]
    named = [word for name in packages() for word in ("-p", name)]
    code = subprocess.run([*mypy, *named], check=False).returncode
    for script in SCRIPTS:
        code |= subprocess.run([*mypy, "--no-error-summary", script], check=False).returncode
    return code


if __name__ == "__main__":
    sys.exit(main())
