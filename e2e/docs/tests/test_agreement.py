"""Pages that speak of the same things speak of all of them."""

from __future__ import annotations

import re

import pytest
from noctaya_api.activation_timeline import PHASES, TOTAL
from noctaya_docs.pages import REPOSITORY

EXPLAINED_BY_THEMSELVES = frozenset(
    {"bad_request", "model_not_found", "method_not_allowed", "request_head_too_large"}
)
"""What a client did wrong and nobody else can put right."""


def text(page: str) -> str:
    return (REPOSITORY / "docs" / page).read_text(encoding="utf-8")


def test_troubleshooting_knows_every_error_that_a_gateway_makes() -> None:
    codes = set(re.findall(r"^\| [45]\d\d \| `(\w+)` \|", text("contracts.md"), re.MULTILINE))
    assert {"queue_full", "activation_timeout", "backend_unavailable"} <= codes
    explained = {code for code in codes if f"`{code}`" in text("troubleshooting.md")}
    assert codes - explained == EXPLAINED_BY_THEMSELVES


def section(name: str) -> str:
    """A section of the contracts, without its heading."""
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", text("contracts.md"), re.M | re.S)
    assert found is not None, name
    return found[1]


def of_package(page: str) -> str:
    return (REPOSITORY / page / "README.md").read_text(encoding="utf-8")


def families(table: str, prefix: str) -> set[str]:
    """Metrics in the first column of a table, whole names and those that go on where the one before began."""
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    names = {name for row in rows for name in re.findall(r"`([a-z_]+)[`{]", row)}
    return {name if name.startswith("noctaya_") else prefix + name for name in names}


def test_the_gateway_s_page_has_the_errors_of_the_contract() -> None:
    row = re.compile(r"^\| [45]\d\d \| `(\w+)` \|", re.M)
    assert set(row.findall(of_package("services/gateway"))) == set(row.findall(section("Gateway: HTTP")))


@pytest.mark.parametrize(
    ("package", "contract", "prefix"),
    [
        ("services/gateway", "Gateway: metrics", "noctaya_gateway_"),
        ("services/aggregate-scaler", "Aggregate scaler: HTTP, port 9091", "noctaya_"),
        ("services/operator", "Operator: metrics", "noctaya_operator_prewarm_bytes"),
    ],
)
def test_a_package_s_page_has_the_metrics_of_the_contract(package: str, contract: str, prefix: str) -> None:
    promised = families(section(contract).partition("| Metric |")[2] or section(contract), prefix)
    assert len(promised) > 3
    told = families(of_package(package).partition("## Metrics")[2], prefix)
    assert {name for name in promised if name.startswith("noctaya_")} - told == set()


def test_the_operator_s_page_has_every_phase_of_an_activation() -> None:
    row = next(line for line in of_package("services/operator").splitlines() if "activation_phase" in line)
    assert set(row.split("histogram: ")[1].rstrip(" |").split(", ")) == {*PHASES, TOTAL}


def test_reliability_s_rows_name_tests_of_scenarios() -> None:
    tests = set(re.findall(r"\(\.\./e2e/scenarios/tests/(test_\w+)\.py\)", text("reliability.md")))
    assert len(tests) >= 10
    told = (REPOSITORY / "e2e" / "scenarios" / "README.md").read_text(encoding="utf-8")
    assert [name for name in tests if name not in told] == []


def test_every_decision_is_in_the_index() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in sorted(folder.glob("0*.md")) if f"({file.name})" not in index] == []
