import pytest
from noctaya_api.yaml_documents import YamlError, read_documents


def values(text: str) -> list[object]:
    return [document.value for document in read_documents(text)]


def test_empty_documents_are_skipped_but_counted() -> None:
    documents = list(read_documents("---\n# only a comment\n---\na: 1\n---\n---\nb: 2\n"))
    assert [(document.number, document.value) for document in documents] == [(2, {"a": 1}), (4, {"b": 2})]


def test_values_are_those_of_json() -> None:
    text = "{a: 1, b: 1.5, c: true, d: null, e: [x, '1'], f: 2026-11-30, g: 12:30, 80: h}"
    assert values(text) == [
        {
            "a": 1,
            "b": 1.5,
            "c": True,
            "d": None,
            "e": ["x", "1"],
            "f": "2026-11-30",
            "g": "12:30",
            "80": "h",
        }
    ]


def test_anchors_and_merge_keys_are_resolved() -> None:
    assert values("base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}\n") == [
        {"base": {"a": 1, "b": 2}, "other": {"a": 1, "b": 3}}
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the field 'a' is given twice"),
        ("a:\n  b: 1\n  'b': 2\n", 3, "the field 'b' is given twice"),
        ("a: 1\n? [x]\n: 2\n", 2, "the key of a field must be text"),
        ("a: 1\nb: !!python/object:os.system {}\n", 2, "has no place in a manifest"),
        ("a: !!timestamp 2026-11-30\n", 1, "has no place in a manifest"),
        ("a: !!int abc\n", 1, "is not a value of its type"),
        ("a: &x\n  b: *x\n", 1, "an alias refers to the object that contains it"),
        ("a: 1\nb: *y\n", 2, "undefined alias"),
        ("a: 1\n\tb: 2\n", 2, "cannot start any token"),
        ("a: 1\nb: \x00\n", 2, "is not allowed"),
        ("a: 1\n--- {\n", 3, "while parsing a flow node"),
    ],
)
def test_what_is_not_a_manifest_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlError, match=message) as refused:
        values(text)
    assert refused.value.line == line


def test_the_line_of_a_field_is_that_of_its_key_or_of_the_closest_object() -> None:
    (document,) = read_documents("a:\n  b:\n  - c: 1\n  - d: 2\n")
    assert document.line_of(("a", "b", 1, "d")) == 4
    assert document.line_of(("a", "b", 0, "missing")) == 3
    assert document.line_of(("a", "b", 9)) == 2
    assert document.line_of(("missing",)) == 1


def test_an_alias_bomb_is_refused_at_once() -> None:
    levels = "abcdefghij"
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for outer, inner in zip(levels[1:], levels, strict=False):
        text += f"{outer}: &{outer} [{', '.join([f'*{inner}'] * 10)}]\n"
    with pytest.raises(YamlError, match="holds more than 300000 values"):
        values(text)


def test_merges_of_merges_do_not_grow() -> None:
    text = "m0: &m0 {k: 1}\n"
    for level in range(1, 12):
        text += f"m{level}: &m{level} {{<<: [{', '.join([f'*m{level - 1}'] * 10)}]}}\n"
    (value,) = values(text)
    assert isinstance(value, dict)
    assert value["m11"] == {"k": 1}


def test_deep_nesting_is_refused_with_a_line() -> None:
    with pytest.raises(YamlError, match="is nested too deeply") as refused:
        values("a:\n " + "[" * 5000 + "]" * 5000)
    assert refused.value.line == 2


def test_a_huge_number_is_quoted_in_part() -> None:
    with pytest.raises(YamlError) as refused:
        values("a: " + "9" * 5000)
    assert len(refused.value.message) < 300
