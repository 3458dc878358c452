"""What others wrote, as it may reach a terminal, a program or a picture.

Names, messages and logs hold whatever somebody put into them: sequences that move the cursor, rename the
window or turn the direction of writing around. People get such characters written out, programs get them as
JSON escapes, pictures get text that every XML reader takes.
"""

from __future__ import annotations

import json
import re
from typing import Final
from xml.sax.saxutils import escape

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
LONGEST: Final = 8_192
"""Characters of one line of a log; who wants more reads the file."""


def plain(text: str) -> str:
    """One line of a log for a terminal: without colours, other control characters written out, the end of a
    huge one cut."""
    line = _COLOUR.sub("", text[: 2 * LONGEST])
    shown = "".join(letter if letter.isprintable() or letter == "\t" else _escape(letter) for letter in line)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def json_text(value: object) -> str:
    """JSON for programs that a terminal can show as well."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # What isn't printable can only stand in strings, but for the ends of lines.
    return "".join(
        letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text
    )


def xml_text(text: str) -> str:
    """Text of an SVG element. XML knows no way to write most control characters, escaped or not."""
    return escape("".join(letter if letter.isprintable() else _escape(letter) for letter in text))


def _escape(letter: str) -> str:
    return ascii(letter)[1:-1]
