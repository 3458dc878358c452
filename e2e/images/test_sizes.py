"""The sizes in the READMEs are those of the images."""

from __future__ import annotations

import re

import pytest
from noctaya_engine.catalog import IMAGES
from noctaya_engine.images import Built
from noctaya_engine.places import ROOT
from noctaya_engine.sizes import MEGABYTE, measure

TOLERANCE = 0.1
WRITTEN = re.compile(
    r"`(?P<reference>\S+)`: (?P<compressed>\d+) MB compressed, (?P<unpacked>\d+) MB unpacked"
)
DOCUMENTED = ("operator", "gateway", "aggregate-scaler", "prewarm-agent", "llamacpp-server")


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_readme_tells_the_size_of_its_image(name: str, built: dict[str, Built]) -> None:
    readme = (ROOT / IMAGES[name].dockerfile).with_name("README.md")
    written = WRITTEN.search(readme.read_text())
    sizes = measure(built[name].tar)
    assert written is not None, f"{readme} says nothing; it is `{IMAGES[name].reference}`: {sizes}"
    assert written["reference"] == IMAGES[name].reference
    for field, measured in (("compressed", sizes.compressed), ("unpacked", sizes.unpacked)):
        assert abs(int(written[field]) * MEGABYTE / measured - 1) < TOLERANCE, f"{readme} is wrong: {sizes}"
