"""The part of Go's text/template that container arguments use.

An argument is text with actions between `{{` and `}}`. An action is one of the three fields of the context,
or a string literal, which is how a literal `{{` is written: `{{ "{{" }}`. Trim markers (`{{-` and `-}}`)
remove white space beside the action as in Go. Everything else of the Go language is refused with the place
where it stands: a template that can't be rendered exactly must fail before anything is started.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


class TemplateError(ValueError):
    """An argument can't be rendered.

    `index` is the position of the argument in its list (None for a single text), `column` counts characters
    from 1.
    """

    def __init__(self, message: str, *, text: str, column: int, index: int | None = None) -> None:
        place = f"argument {index} " if index is not None else ""
        super().__init__(f"{place}{text!r}, character {column}: {message}")
        self.message = message
        self.text = text
        self.column = column
        self.index = index


@dataclass(frozen=True, kw_only=True)
class TemplateContext:
    """What a template may refer to."""

    model_path: str
    service_name: str
    service_namespace: str

    def fields(self) -> dict[str, str]:
        """Field names as templates write them, with their values."""
        return {
            ".Model.Path": self.model_path,
            ".Service.Name": self.service_name,
            ".Service.Namespace": self.service_namespace,
        }


_SPACE: Final = " \t\r\n"
_FIELD: Final = re.compile(r"(?:\.[^\W\d]\w*)+")
_INTERPRETED: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_RAW: Final = re.compile(r"`[^`]*`")
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\\"])|x(?P<x>[0-9a-fA-F]{2})|(?P<o>[0-3][0-7]{2})|"
    r"u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<bad>.))"
)
_SIMPLE: Final = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", "\\": b"\\", '"': b'"'
}  # fmt: skip


def render_args(args: Sequence[str], context: TemplateContext) -> list[str]:
    """Render every argument of a list. Raises TemplateError that names the argument and the character."""
    return [render(text, context, index=index) for index, text in enumerate(args)]


def render(text: str, context: TemplateContext, *, index: int | None = None) -> str:
    """Render one text. Raises TemplateError; `index` is only used to name the place."""
    return _Rendering(text=text, fields=context.fields(), index=index).run()


class _Rendering:
    """One pass over one text: literal text up to `{{`, then one action, until the end."""

    def __init__(self, *, text: str, fields: dict[str, str], index: int | None) -> None:
        self.text = text
        self.fields = fields
        self.index = index

    def run(self) -> str:
        parts: list[str] = []
        position = 0
        trim_next = False
        while True:
            start = self.text.find("{{", position)
            literal = self.text[position : start if start >= 0 else len(self.text)]
            if trim_next:
                literal = literal.lstrip(_SPACE)
            if start < 0:
                parts.append(literal)
                return "".join(parts)
            opening = 3 if self._trims_before(start) else 2
            parts.append(literal.rstrip(_SPACE) if opening == 3 else literal)
            value, position, trim_next = self._action(start, start + opening)
            parts.append(value)

    def _trims_before(self, start: int) -> bool:
        # Go takes the minus as a marker only when white space follows; otherwise it begins a number.
        return self.text.startswith("-", start + 2) and self.text[start + 3 : start + 4] in tuple(_SPACE)

    def _action(self, start: int, position: int) -> tuple[str, int, bool]:
        """Value of the action that opened at `start`, where it ends, and whether it trims what follows."""
        position = self._skip_space(position)
        value, after = self._operand(start, position)
        end = self._skip_space(after)
        if self.text.startswith("-}}", end) and end > after:
            return value, end + 3, True
        if self.text.startswith("}}", end):
            return value, end + 2, False
        if self.text.find("}}", end) < 0:
            raise self._error("the action is not closed with }}", start)
        raise self._error("only a field or a string literal may stand between {{ and }}", end)

    def _operand(self, start: int, position: int) -> tuple[str, int]:
        if found := _FIELD.match(self.text, position):
            name = found[0]
            if name not in self.fields:
                raise self._error(f"unknown field {name}; known are {', '.join(self.fields)}", position)
            return self.fields[name], found.end()
        if found := _INTERPRETED.match(self.text, position):
            return self._unquote(found[0], position), found.end()
        if found := _RAW.match(self.text, position):
            return found[0][1:-1].replace("\r", ""), found.end()
        if self.text[position : position + 1] in {'"', "`"}:
            raise self._error("the string literal is not closed", position)
        if self.text.startswith(("}}", "-}}"), position):
            raise self._error("the action is empty", start)
        if self.text.find("}}", position) < 0:
            raise self._error("the action is not closed with }}", start)
        raise self._error("only a field or a string literal may stand between {{ and }}", position)

    def _unquote(self, literal: str, position: int) -> str:
        """Value of a Go interpreted string literal; \\x and octal escapes are bytes, as in Go."""
        value = bytearray()
        done = 1
        for found in _ESCAPE.finditer(literal, 1, len(literal) - 1):
            value += literal[done : found.start()].encode()
            done = found.end()
            if found["simple"]:
                value += _SIMPLE[found["simple"]]
            elif found["bad"]:
                raise self._error(f"unknown escape {found[0]}", position + found.start())
            elif found["x"] or found["o"]:
                value.append(int(found["x"], 16) if found["x"] else int(found["o"], 8))
            else:
                value += self._rune(found["u"] or found["U"], position + found.start()).encode()
        value += literal[done:-1].encode()
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise self._error("the string literal is not valid UTF-8", position) from None

    def _rune(self, digits: str, position: int) -> str:
        number = int(digits, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise self._error("the escape is not a Unicode character", position)
        return chr(number)

    def _skip_space(self, position: int) -> int:
        while self.text[position : position + 1] in tuple(_SPACE):
            position += 1
        return position

    def _error(self, message: str, position: int) -> TemplateError:
        return TemplateError(message, text=self.text, column=position + 1, index=self.index)
