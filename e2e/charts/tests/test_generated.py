"""What is generated in the charts is what its sources give, and the check can tell."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from noctaya_charts.__main__ import main
from noctaya_charts.generated import CHARTS, NAMES, ChartFault, generated_files


def test_every_generated_file_is_what_its_sources_give() -> None:
    assert main(["check"]) == 0


def test_check_shows_what_differs_and_write_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    charts = tmp_path / "charts"
    shutil.copytree(CHARTS, charts)
    values = charts / "gateway" / "values.yaml"
    values.write_text(values.read_text().replace("maxQueue: 100", "maxQueue: 101"))
    monkeypatch.setattr("noctaya_charts.__main__.generated_files", lambda: generated_files(charts))
    monkeypatch.setattr("noctaya_charts.__main__.REPOSITORY", tmp_path)

    assert main(["check"]) == 1
    told = capsys.readouterr().err
    assert "+| `gateway.maxQueue` | `101` |" in told
    assert "python -m noctaya_charts write" in told

    assert main(["write"]) == 0
    assert main(["check"]) == 0


def test_a_value_without_a_comment_is_refused_by_chart_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    charts = tmp_path / "charts"
    shutil.copytree(CHARTS, charts)
    values = charts / "prewarm-agent" / "values.yaml"
    values.write_text(values.read_text() + "more: 1\n")
    monkeypatch.setattr("noctaya_charts.__main__.generated_files", lambda: generated_files(charts))

    with pytest.raises(ChartFault, match=r"charts/prewarm-agent: line \d+: more has no comment"):
        list(generated_files(charts))
    assert main(["check"]) == 1
    assert "charts/prewarm-agent: line" in capsys.readouterr().err


def test_no_two_charts_define_a_template_of_the_same_name() -> None:
    owners: dict[str, str] = {}
    for chart in NAMES:
        for file in (CHARTS / chart / "templates").iterdir():
            for name in re.findall(r'define "([^"]+)"', file.read_text()):
                assert name not in owners, f"{name} is defined in {owners[name]} and in {chart}/{file.name}"
                owners[name] = f"{chart}/{file.name}"


def test_every_defined_template_is_used() -> None:
    for chart in NAMES:
        text = "".join(file.read_text() for file in (CHARTS / chart / "templates").iterdir())
        defined = set(re.findall(r'define "([^"]+)"', text))
        used = set(re.findall(r'include "([^"]+)"', text))
        shared = {name for name in defined if _is_shared(name)}
        assert defined - used - shared == set(), chart
        assert used - defined == set(), chart


def _is_shared(name: str) -> bool:
    files = (CHARTS / "shared").glob("*.tpl")
    return any(f'define "noctaya.{name.rpartition(".")[2]}"' in file.read_text() for file in files)
