"""Output for terminals and files that know no Unicode: signs become ASCII instead of an error."""

from __future__ import annotations

import codecs
import io
from typing import Final, TextIO

NAME: Final = "noctaya.plain"
"""Of the error handler, as codecs know it."""
_SIGNS: Final = {
    "✖": "x",
    "✔": "+",
    "→": "->",
    "←": "<-",
    "…": "...",
    "›": ">",
    **dict.fromkeys("█▉▊▋▌", "#"),
    **dict.fromkeys("▍▎▏", "|"),
}


def allow_any_text(stream: TextIO) -> None:
    """Let a stream take every text; what its encoding does not have is replaced."""
    if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
        codecs.register_error(NAME, _replaced)
        stream.reconfigure(errors=NAME)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(_SIGNS.get(each, "?") for each in found), error.end
