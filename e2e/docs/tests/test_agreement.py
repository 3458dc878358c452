"""Pages that speak of the same things speak of all of them."""

from __future__ import annotations

import re

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


def test_reliability_s_rows_name_tests_of_scenarios() -> None:
    tests = set(re.findall(r"\(\.\./e2e/scenarios/tests/(test_\w+)\.py\)", text("reliability.md")))
    assert len(tests) >= 10
    told = (REPOSITORY / "e2e" / "scenarios" / "README.md").read_text(encoding="utf-8")
    assert [name for name in tests if name not in told] == []


def test_every_decision_is_in_the_index() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in sorted(folder.glob("0*.md")) if f"({file.name})" not in index] == []
