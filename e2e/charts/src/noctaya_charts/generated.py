"""Every file of the charts that is not written by hand, as path and text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from noctaya_charts.readme import ReadmeFault, render_readme
from noctaya_charts.rights import render_rights
from noctaya_charts.schema import render_schema
from noctaya_charts.values import ValuesFault, parse_values

REPOSITORY: Final = Path(__file__).parents[4]
"""This package is used in place, from a checkout."""
CHARTS: Final = REPOSITORY / "charts"
NAMES: Final = ("operator", "gateway", "aggregate-scaler", "prewarm-agent")
"""Folders of the charts."""
SHARED: Final = {
    "_shared.tpl": NAMES,
    "_component.tpl": ("gateway", "aggregate-scaler", "prewarm-agent"),
    "_demand.tpl": ("gateway", "aggregate-scaler"),
}
"""Templates of which each of these charts has a copy, so that it installs from a checkout as it is."""


_TEMPLATE: Final = re.compile(r'\b(define|include) "noctaya\.')


class ChartFault(Exception):
    """A chart is not written as the generator reads it."""


def generated_files(charts: Path = CHARTS) -> Iterator[tuple[Path, str]]:
    """Path and text of every generated file.

    Raises:
        ChartFault: names the chart and what is wrong with it.
    """
    for name, users in SHARED.items():
        text = (charts / "shared" / name).read_text(encoding="utf-8")
        for user in users:
            yield charts / user / "templates" / name, _adopted(text, chart=_name_of(charts / user))
    yield charts / "operator" / "templates" / "_rights.tpl", render_rights()
    for name in NAMES:
        chart = charts / name
        try:
            values = parse_values((chart / "values.yaml").read_text(encoding="utf-8"))
            readme = chart / "README.md"
            yield chart / "values.schema.json", render_schema(name, values)
            yield readme, render_readme(readme.read_text(encoding="utf-8"), values)
        except (ValuesFault, ReadmeFault) as fault:
            raise ChartFault(f"charts/{name}: {fault}") from fault


def _adopted(text: str, *, chart: str) -> str:
    """The copy of a shared template in one chart. Names of templates are global to everything that is
    installed together, in whatever versions, so each chart's begin with its own name."""
    return _TEMPLATE.sub(lambda match: f'{match[1]} "{chart}.', text)


def _name_of(chart: Path) -> str:
    name: str = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))["name"]
    return name
