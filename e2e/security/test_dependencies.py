"""What our five programs bring along: pinned exactly, installed as pinned, under licences that we know.

Whether a vulnerability of it is known has to be asked of a service, whose answer changes without a change
here: `pip-audit` does that (README).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
PROGRAMS = (
    "noctaya-gateway",
    "noctaya-aggregate-scaler",
    "noctaya-operator",
    "noctaya-prewarm[huggingface,modelscope]",
    "noctaya-cli[cluster]",
)
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|0BSD|CC0)\b", re.IGNORECASE
)
FILE_COPYLEFT = re.compile(r"\b(MPL|Mozilla Public License)\b", re.IGNORECASE)
"""Bind changes of their own files only; used as they are."""
COPYLEFT: frozenset[str] = frozenset({"certifi", "tqdm"})
"""Under the Mozilla Public License: certifi is data, tqdm comes with huggingface_hub."""


def pins() -> dict[str, str]:
    """Version by name, of every line that is one."""
    lines = (line.partition(";")[0].strip() for line in CONSTRAINTS.read_text().splitlines())
    return {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in lines)
        if name
    }


def brought_along() -> dict[str, Distribution]:
    """Every distribution of others that an installation of ours has."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(program) for program in PROGRAMS]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        seen = f"{name}[{','.join(sorted(wanted.extras))}]"
        if seen in found:
            continue
        found[seen] = distribution(name)
        waiting += applying(found[seen], wanted.extras)
    others = {canonicalize_name(each.metadata["Name"]): each for each in found.values()}
    return {name: each for name, each in sorted(others.items()) if not name.startswith("noctaya-")}


def applying(one: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for text in one.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""})):
            yield requirement


def licence_of(one: Distribution) -> str:
    """What the metadata says, in whichever field."""
    fields = [one.metadata.get("License-Expression"), one.metadata.get("License")]
    classifiers = [each for each in one.metadata.get_all("Classifier") or () if each.startswith("License ::")]
    return " ".join(str(text).partition("\n")[0] for text in [*fields, *classifiers] if text)


BROUGHT = brought_along()


def test_something_is_brought_along() -> None:
    assert {"grpcio", "pydantic", "uvicorn", "kubernetes", "huggingface-hub"} <= BROUGHT.keys()


@pytest.mark.parametrize("name", BROUGHT)
def test_it_is_pinned_and_installed_as_pinned(name: str) -> None:
    assert pins().get(name) == BROUGHT[name].version


def test_every_pin_is_exact_and_from_the_index() -> None:
    assert all(re.fullmatch(r"[0-9][0-9A-Za-z.!+]*", version) for version in pins().values())
    assert "://" not in CONSTRAINTS.read_text()


@pytest.mark.parametrize("name", BROUGHT)
def test_its_licence_is_known_and_copyleft_is_named(name: str) -> None:
    licence = licence_of(BROUGHT[name])
    if name in COPYLEFT:
        assert FILE_COPYLEFT.search(licence), licence
    else:
        assert PERMISSIVE.search(licence), f"{name}: {licence or 'no licence in its metadata'}"
        assert not re.search(r"\b[AL]?GPL", licence), licence
