"""The catalog, the Dockerfiles and what else must agree with them."""

from __future__ import annotations

import fnmatch
import re

import pytest
from noctaya_engine.catalog import IMAGES, VERSION, find
from noctaya_engine.errors import UnknownImage
from noctaya_engine.places import ROOT
from noctaya_engine.trials import TRIALS
from noctaya_operator import defaults
from noctaya_parts import versions

PYTHON_IMAGES = [name for name, image in IMAGES.items() if image.base]


def dockerfile(name: str) -> str:
    return (ROOT / IMAGES[name].dockerfile).read_text()


def copied(name: str) -> list[str]:
    """What a Dockerfile takes out of its context."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", dockerfile(name), re.MULTILINE)
    mounted = re.findall(r"type=bind,source=(\S+?),", dockerfile(name))
    return [source for line in lines for source in line.split()[:-1]] + mounted


def test_the_operator_names_the_images_that_are_built() -> None:
    references = {name: image.reference for name, image in IMAGES.items()}
    assert references["gateway"] == defaults.GATEWAY_IMAGE
    assert references["aggregate-scaler"] == defaults.AGGREGATE_SCALER_IMAGE
    assert references["prewarm-agent"] == defaults.PREWARM_IMAGE
    assert references["oras"] == defaults.ORAS_IMAGE
    assert references["oras"].endswith(f":v{versions.ORAS}")


def test_no_name_means_all_and_an_unknown_one_is_refused_with_those_there_are() -> None:
    assert find(()) == list(IMAGES.values())
    with pytest.raises(UnknownImage, match=r"'gatway'; there are operator, gateway"):
        find(("gatway",))


def test_every_python_image_is_under_trial() -> None:
    assert [trial.image for trial in TRIALS] == PYTHON_IMAGES


@pytest.mark.parametrize("name", IMAGES)
def test_what_a_dockerfile_copies_is_declared(name: str) -> None:
    image = IMAGES[name]
    declared = [*image.inputs, *(f"parts/{part}" for part in image.parts)]
    assert copied(name)
    for source in copied(name):
        assert any(source == one or source.startswith(f"{one}/") for one in declared), source


@pytest.mark.parametrize("name", PYTHON_IMAGES)
def test_dockerignore_lets_through_what_a_build_by_hand_needs(name: str) -> None:
    ignored = (ROOT / ".dockerignore").read_text().split("\n*\n")[1].splitlines()
    let_through = [line[1:] for line in ignored if line.startswith("!")]
    again = [line.removeprefix("**/") for line in ignored if line.startswith("**/")]
    for source in copied(name):
        assert any(source == one or source.startswith(f"{one}/") for one in let_through), source
        assert not any(fnmatch.fnmatchcase(part, one) for part in source.split("/") for one in again), source


@pytest.mark.parametrize("name", PYTHON_IMAGES)
def test_dockerfiles_keep_the_rules_of_the_house(name: str) -> None:
    text = dockerfile(name)
    assert text.count("--constraint constraints.txt") == 2
    assert "ARG PYTHON_IMAGE=python:3.11-slim-bookworm" in text
    assert "USER 65532:65532" in text
    assert re.search(r'^ENTRYPOINT \["/opt/noctaya/bin/[a-z-]+"\]$', text, re.MULTILINE)
    assert f"ARG VERSION={VERSION}" in text
    assert not re.search(r"https?://(?!github\.com/noctaya)", text), "no address of an index"


def test_builds_begin_with_the_same_steps_so_that_images_share_them() -> None:
    def beginning(name: str) -> str:
        text = dockerfile(name)
        return text[text.index("ARG PYTHON_IMAGE") : text.index("# What the service needs")]

    assert len({beginning(name) for name in PYTHON_IMAGES}) == 1
