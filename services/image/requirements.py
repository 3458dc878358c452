"""What a package of this repository needs from the package index, for an image layer of its own.

    requirements.py FOLDER[EXTRA,...] [LOCAL_FOLDER...]

Prints one requirement a line. A requirement on another package of this repository (one of the local
folders) is replaced by what that one needs. Runs in the build stage of an image with nothing but the
interpreter.
"""

import re
import sys
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?")


def main(arguments: list[str]) -> None:
    """Print the requirements of the first folder; the others are the local packages it may need."""
    target, *local = arguments
    folder, _, extras = target.rstrip("]").partition("[")
    packages = {str(project["name"]): project for project in map(project_of, local)}
    found = third_party(project_of(folder), split(extras), packages)
    print("\n".join(sorted(found)))


def project_of(folder: str) -> dict[str, object]:
    """The `[project]` table of a package."""
    table: dict[str, object] = tomllib.loads((Path(folder) / "pyproject.toml").read_text())["project"]
    return table


def split(extras: str) -> list[str]:
    """Names between brackets."""
    return [name.strip() for name in extras.split(",") if name.strip()]


def third_party(
    project: dict[str, object], extras: list[str], local: dict[str, dict[str, object]]
) -> set[str]:
    """Requirements of a project with these extras, those of local packages in place of the packages.

    Raises KeyError when it has no such extra.
    """
    optional: dict[str, list[str]] = project.get("optional-dependencies", {})  # type: ignore[assignment]
    needs: list[str] = list(project.get("dependencies", []))  # type: ignore[call-overload]
    for extra in extras:
        needs += optional[extra]
    found: set[str] = set()
    for need in needs:
        match = REQUIREMENT.match(need)
        if match is None:
            raise SystemExit(f"requirements.py: {need!r} is no requirement")
        name = match["name"]
        if name in local:
            found |= third_party(local[name], split(match["extras"] or ""), local)
        elif name == project["name"]:
            found |= third_party({**project, "dependencies": []}, split(match["extras"] or ""), local)
        else:
            found.add(need)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
