"""`$(NAME)` references, as Kubernetes expands them."""

import pytest
from noctaya_cli.expansion import expand, expand_environment


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("--port=$(PORT)", "--port=8123"),
        ("$(PORT)$(PORT)", "81238123"),
        ("$$(PORT)", "$(PORT)"),
        ("$$$(PORT)", "$8123"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$PORT ${PORT}", "$PORT ${PORT}"),
        ("costs 5$", "costs 5$"),
        ("$(PORT", "$(PORT"),
        ("", ""),
    ],
)
def test_references_are_expanded_and_escapes_are_not(text: str, expanded: str) -> None:
    assert expand(text, {"PORT": "8123"}) == expanded


def test_the_value_of_a_variable_is_not_expanded_again() -> None:
    assert expand("$(A)", {"A": "$(B)", "B": "no"}) == "$(B)"


def test_an_environment_entry_sees_the_ones_before_it_only() -> None:
    entries = [("A", "$(B)"), ("B", "1"), ("C", "$(B)$(PORT)")]
    assert expand_environment(entries, given={"PORT": "2"}) == {"A": "$(B)", "B": "1", "C": "12"}
