"""A chart's values with what their comments say: `values.yaml` read line by line beside YAML's own reading.

The comment block directly above a key describes it; a last line `# @schema ...` says what its default can't:
the name of a definition (`@schema env`), or fields of JSON schema in YAML's flow style
(`@schema {minimum: 1}`). A mapping whose keys have comments is a group; any other mapping is one value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

_KEY: Final = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):(?: |$)")
_SCHEMA: Final = "@schema "
INDENT: Final = 2


class ValuesFault(Exception):
    """values.yaml is not written as the generator reads it."""


@dataclass(kw_only=True)
class Value:
    """One key of values.yaml."""

    path: tuple[str, ...]
    description: str
    default: Any
    line: int
    schema: str | Mapping[str, Any] | None
    """Name of a definition, fields of JSON schema, or None: the default says it."""
    children: list[Value] = field(default_factory=list)
    """Described keys below it; with any of them it is a group."""

    @property
    def name(self) -> str:
        """As `--set` takes it."""
        return ".".join(self.path)

    def leaves(self) -> Iterator[Value]:
        """Itself, or everything below it that is a value of its own."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def parse_values(text: str) -> list[Value]:
    """The top-level values in their order.

    Raises:
        ValuesFault: a value has no comment, a comment no key, or `@schema` is no YAML; with the line.
    """
    defaults = yaml.safe_load(text) or {}
    top: list[Value] = []
    open_: list[Value] = []
    comment: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            comment.append(line.strip().removeprefix("#").strip())
            continue
        match = _KEY.match(line)
        if match is None:
            if comment and line.strip():
                raise ValuesFault(
                    f"line {number}: a comment above something that is no key: {line.strip()!r}"
                )
            comment = []  # a heading, with nothing of its own below it
            continue
        depth = len(match[1]) // INDENT
        path = (*_path_of(open_, depth), match[2])
        if depth > len(open_):
            continue  # inside a value, such as the limits of resources
        value = _value(path, comment, default=_at(defaults, path), line=number)
        comment = []
        del open_[depth:]
        (open_[-1].children if open_ else top).append(value)
        open_.append(value)
    return _settled(top)


def _settled(top: list[Value]) -> list[Value]:
    """Take the keys inside a described mapping as parts of it; refuse values that nothing describes."""
    for value in top:
        _fold(value)
    for leaf in (leaf for value in top for leaf in value.leaves()):
        if not leaf.description:
            raise ValuesFault(f"line {leaf.line}: {leaf.name} has no comment")
    return top


def _fold(value: Value) -> None:
    for child in value.children:
        _fold(child)
    if value.children and not any(child.description or child.children for child in value.children):
        value.children = []


def _value(path: tuple[str, ...], comment: list[str], *, default: Any, line: int) -> Value:
    schema: str | Mapping[str, Any] | None = None
    if comment and comment[-1].startswith(_SCHEMA):
        try:
            schema = yaml.safe_load(comment[-1].removeprefix(_SCHEMA))
        except yaml.YAMLError as error:
            raise ValuesFault(f"line {line}: {comment[-1]!r} is no YAML: {error}") from error
        if not isinstance(schema, str | dict):
            raise ValuesFault(f"line {line}: {comment[-1]!r} is neither a name nor a mapping")
        comment = comment[:-1]
    return Value(path=path, description=" ".join(comment).strip(), default=default, line=line, schema=schema)


def _path_of(open_: list[Value], depth: int) -> tuple[str, ...]:
    return open_[depth - 1].path if 0 < depth <= len(open_) else ()


def _at(defaults: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        defaults = defaults.get(part) if isinstance(defaults, dict) else None
    return defaults
