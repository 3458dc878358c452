"""Bills of materials: valid CycloneDX, and exactly what is in the image by its own account."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from noctaya_engine.catalog import IMAGES, VERSION
from noctaya_engine.images import Built
from noctaya_engine.places import ROOT
from noctaya_engine.started import Start
from noctaya_engine.trials import Trial

SEEN_BY_PYTHON = """
import importlib.metadata, json, re
found = [(one.metadata["Name"], one.version) for one in importlib.metadata.distributions()]
print(json.dumps(sorted((re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in found)))
"""
SEEN_BY_DPKG = """
import json, pathlib
found = []
for file in pathlib.Path("/var/lib/dpkg/status.d").iterdir():
    lines = [line for line in file.read_text().splitlines() if line[0] != " " and ": " in line]
    fields = dict(line.split(": ", 1) for line in lines)
    found.append((fields["Package"], fields["Version"]))
print(json.dumps(sorted(found)))
"""


def read(built: Built) -> dict[str, Any]:
    bill: dict[str, Any] = json.loads(built.sbom.read_text())
    return bill


def listed(bill: dict[str, Any], kind: str) -> list[list[str]]:
    return sorted(
        [component["name"], component["version"]]
        for component in bill["components"]
        if component["purl"].startswith(f"pkg:{kind}/")
    )


@pytest.mark.parametrize("name", IMAGES)
def test_a_bill_is_valid_and_is_about_its_image(name: str, built: dict[str, Built]) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(built[name].sbom.read_text()) is None
    about = read(built[name])["metadata"]["component"]
    assert about["type"] == "container"
    assert IMAGES[name].reference.startswith(f"{about['name']}:")


def test_it_lists_what_is_installed_and_nothing_else(
    trial: Trial, built: dict[str, Built], start: Start
) -> None:
    bill = read(built[trial.image])
    container = start(trial)
    assert listed(bill, "pypi") == json.loads(container.python(SEEN_BY_PYTHON))
    assert listed(bill, "deb/debian") == json.loads(container.python(SEEN_BY_DPKG))
    assert [trial.distribution, VERSION] in listed(bill, "pypi")
    assert len(listed(bill, "deb/debian")) > 20


def test_everything_from_the_package_index_is_pinned(trial: Trial, built: dict[str, Built]) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.partition(";")[0].strip().split("==") for line in lines if "==" in line)
    ours = {name for name, version in listed(read(built[trial.image]), "pypi") if version == VERSION}
    assert {name for name in ours if not name.startswith("noctaya-")} == set()
    installed = dict(listed(read(built[trial.image]), "pypi"))
    assert {name: version for name, version in installed.items() if name not in ours} == {
        name: pins.get(name) for name in installed if name not in ours
    }


def test_the_bill_of_a_go_program_names_its_modules(built: dict[str, Built]) -> None:
    modules = dict(listed(read(built["oras"]), "golang"))
    assert modules["oras.land/oras"].startswith("v1.3.0")
    assert len(modules) > 10
