"""YAML as kubectl reads it: several documents a file, JSON values only, no duplicate keys, and a line for
every field.

PyYAML is an extra of this package (`noctaya-api[yaml]`); the services don't need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

try:
    import yaml
except ImportError as error:
    raise ImportError("reading YAML needs PyYAML: install noctaya-api[yaml]") from error

from noctaya_api.structural import Path

MOST_VALUES: Final = 300_000
"""Values of one document, with aliases counted as often as they are used: far more than a manifest has, few
enough to be built in a second."""
_QUOTED: Final = 60


class YamlError(ValueError):
    """The text is not usable YAML. `line` counts from 1."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of a file."""

    number: int
    """Position in the file, from 1; empty documents count."""
    value: Any
    """JSON value of the document."""
    node: yaml.Node

    def line_of(self, path: Path) -> int:
        """Line, from 1, of the field at a path, or of the closest object around it."""
        node, line = self.node, self.node.start_mark.line
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line + 1


class _Loader(yaml.SafeLoader):
    """The safe loader without timestamps and base-60 numbers, which JSON doesn't have."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Resolve merge keys. A key is kept once, or merges of merges would grow without bound."""
        super().flatten_mapping(node)
        node.value = list({key.value: (key, item) for key, item in node.value}.values())


_KEPT: Final = ("null", "bool", "int", "float", "merge")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.removeprefix("tag:yaml.org,2002:") in _KEPT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_SCALARS: Final = tuple(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str"))


def read_documents(text: str) -> Iterator[Document]:
    """The documents of a text that are not empty. Raises YamlError at the first one that can't be read."""
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:
        raise _problem(error, text) from None
    try:
        number = 0
        while loader.check_node():
            number += 1
            node = loader.get_node()
            if node is None:
                break
            value = _Builder(loader).build(node, ())
            if value is not None:
                yield Document(number=number, value=value, node=node)
    except yaml.YAMLError as error:
        raise _problem(error, text) from None
    except RecursionError:
        raise YamlError("is nested too deeply", line=loader.line + 1) from None
    finally:
        loader.dispose()


class _Builder:
    """Turns the nodes of one document into a JSON value."""

    def __init__(self, loader: _Loader) -> None:
        self._loader = loader
        self._left = MOST_VALUES

    def build(self, node: yaml.Node, ancestors: tuple[int, ...]) -> Any:
        line = node.start_mark.line + 1
        self._left -= 1
        if self._left < 0:
            raise YamlError(f"holds more than {MOST_VALUES} values, aliases counted in full", line=line)
        if id(node) in ancestors:
            raise YamlError("an alias refers to the object that contains it", line=line)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(self._loader, node)
        inner = (*ancestors, id(node))
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.build(item, inner) for item in node.value]
        if not isinstance(node, yaml.MappingNode) or node.tag != "tag:yaml.org,2002:map":
            raise YamlError(f"the tag {node.tag} has no place in a manifest", line=line)
        _refuse_duplicates(node)
        self._loader.flatten_mapping(node)
        return {_key(key): self.build(item, inner) for key, item in node.value}


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> Any:
    line = node.start_mark.line + 1
    if node.tag not in _SCALARS:
        raise YamlError(f"the tag {node.tag} has no place in a manifest", line=line)
    if node.tag == "tag:yaml.org,2002:int" and ":" in node.value:
        return node.value
    try:
        return loader.construct_object(node)
    except ValueError as error:
        quoted = node.value if len(node.value) <= _QUOTED else f"{node.value[:_QUOTED]}…"
        raise YamlError(f"{quoted!r} is not a value of its type: {error}", line=line) from None


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise YamlError("the key of a field must be text", line=node.start_mark.line + 1)
    return str(node.value)


def _refuse_duplicates(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        name = _key(key)
        if name in seen and key.tag != "tag:yaml.org,2002:merge":
            raise YamlError(f"the field {name!r} is given twice", line=key.start_mark.line + 1)
        seen.add(name)


def _child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, item in node.value:
            if key.value == step:
                return key.start_mark.line, item
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item.start_mark.line, item
    return None


def _problem(error: yaml.YAMLError, text: str) -> YamlError:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        what = " ".join(part for part in (error.context, error.problem) if part)
        return YamlError(what, line=error.problem_mark.line + 1)
    position = getattr(error, "position", 0)
    line = text.count("\n", 0, position) + 1
    return YamlError(f"the character at offset {position} is not allowed", line=line)
