"""The dashboards: generated, understood by Prometheus, laid out without overlap."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from noctaya_monitoring.dashboard import COLUMNS, Dashboard
from noctaya_monitoring.dashboards import ALL

from .conftest import EXAMPLE


def test_the_committed_files_are_what_the_descriptions_give() -> None:
    command = [sys.executable, "-m", "noctaya_monitoring", "--check", "--output", str(EXAMPLE / "dashboards")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dashboard", ALL, ids=lambda each: each.uid)
def test_prometheus_understands_every_query(dashboard: Dashboard, promtool: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"q{number}", "expr": query.of(namespace="n", service="s")}
        for number, (_, query) in enumerate(dashboard.queries())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("dashboard", ALL, ids=lambda each: each.uid)
def test_panels_do_not_overlap_or_leave_the_page(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.render()["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= COLUMNS
        taken |= cells
