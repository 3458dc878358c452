"""values.yaml as the generator reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from noctaya_charts.readme import BEGIN, END, ReadmeFault, render_readme
from noctaya_charts.schema import render_schema
from noctaya_charts.values import ValuesFault, parse_values

TEXT = """\
# A heading that belongs to nothing.

# How many,
# in two lines.
# @schema {minimum: 1}
count: 2

global:
  # Where from.
  registry: ""

group:
  # On or off.
  enabled: true
  # What it may use.
  # @schema cpuAndMemory
  resources:
    limits:
      cpu: 500m
    requests:
      cpu: 10m
  # A | in words.
  # @schema objects
  things: []
"""


def schema_of(text: str) -> Any:
    return json.loads(render_schema("some", parse_values(text)))


def test_a_value_is_described_by_the_comment_directly_above_it() -> None:
    count, _, group = parse_values(TEXT)
    assert (count.name, count.description, count.default) == ("count", "How many, in two lines.", 2)
    assert [leaf.name for leaf in group.leaves()] == ["group.enabled", "group.resources", "group.things"]


def test_the_schema_takes_types_from_defaults_and_the_rest_from_the_comment() -> None:
    schema = schema_of(TEXT)
    described = {"description": "How many, in two lines.", "default": 2}
    assert schema["properties"]["count"] == {**described, "type": "integer", "minimum": 1}
    assert schema["properties"]["group"]["properties"]["enabled"]["type"] == "boolean"


def test_the_schema_refuses_other_keys_everywhere_but_in_global() -> None:
    schema = schema_of(TEXT)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["group"]["additionalProperties"] is False
    assert schema["properties"]["global"]["additionalProperties"] is True


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a:\n  b: 1\n", "line 1: a has no comment"),
        ("a:\n  # Some.\n  b: 1\n  c: 1\n", "line 4: a.c has no comment"),
        ("# Some.\nitems: []\n", "says no type"),
        ("# Some.\nitem:\n", "says no type"),
        ("# Some.\n# @schema nothing\nitem: 1\n", "no definition 'nothing'"),
        ("# Some.\n# @schema {a: [}\nitem: 1\n", "line 3: .* is no YAML"),
        ("# Some.\n# @schema 5\nitem: 1\n", "neither a name nor a mapping"),
        ("things:\n  # Some.\n  - 1\n", "line 3: a comment above something that is no key"),
    ],
)
def test_what_the_generator_can_not_read_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValuesFault, match=fault):
        schema_of(text)


def test_the_readme_has_one_row_a_value_and_keeps_what_surrounds_the_table() -> None:
    text = render_readme(f"before\n{BEGIN}\nold\n{END}\nafter\n", parse_values(TEXT))
    before, _, rest = text.partition(BEGIN)
    table, _, after = rest.partition(END)
    assert (before, after) == ("before\n", "\nafter\n")
    assert "old" not in table
    assert "| `count` | `2` | How many, in two lines. |" in table
    assert "| `group.things` |  | A \\| in words. |" in table
    assert table.count("\n| `") == 5


def test_a_readme_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ReadmeFault, match="must surround the table"):
        render_readme("nothing", parse_values(TEXT))
