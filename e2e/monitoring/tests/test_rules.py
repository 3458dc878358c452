"""The alerts: each fires on its fault, is silent just short of it, and is in the docs."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import EXAMPLE, ROOT

ALERTS = Path(__file__).with_name("alerts.yaml")


def names(rules: dict[str, Any]) -> set[str]:
    return {rule["alert"] for group in rules["groups"] for rule in group["rules"]}


def test_each_alert_fires_on_its_fault_and_not_before(
    promtool: str, rules: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    shutil.copy(ALERTS, tmp_path)
    done = subprocess.run(
        [promtool, "test", "rules", "alerts.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_both_ways(rules: dict[str, Any]) -> None:
    fires, silent = set(), set()
    for case in yaml.safe_load(ALERTS.read_text())["tests"]:
        for check in case["alert_rule_test"]:
            (fires if check["exp_alerts"] else silent).add(check["alertname"])
    assert fires == names(rules)
    # These are told apart from a calm neighbour in the same test instead of from an earlier moment.
    beside = {"NoctayaActivationSlow", "NoctayaCertificateExpires"}
    assert names(rules) - silent == beside


def test_every_alert_says_what_to_do_and_how_bad_it_is(rules: dict[str, Any]) -> None:
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
            assert rule["labels"]["severity"] in {"warning", "critical"}, rule["alert"]
            assert "for" in rule, rule["alert"]


@pytest.mark.parametrize(
    "page", [EXAMPLE / "README.md", ROOT / "docs" / "observability.md"], ids=lambda page: page.name
)
def test_the_alerts_are_listed(page: Path, rules: dict[str, Any]) -> None:
    listed = re.findall(r"^\| `(Noctaya\w+)` \|", page.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(names(rules))
