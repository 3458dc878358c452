"""Headers that go to a trace collector, from a file: a credential has no business in an environment.

The file is a key of a Secret. It is read for every batch of spans, so that a change needs no restart; one
that is not there gives no headers. Its form is that of `OTEL_EXPORTER_OTLP_HEADERS`: `name=value`, values
percent-encoded where need be, separated by commas or lines.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from requests import PreparedRequest

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[ -~]+")


class HeadersUnusable(ValueError):
    """These are no headers; the message tells nothing of what they hold."""


def parse_headers(text: str) -> dict[str, str]:
    """Headers by name in lower case.

    Raises:
        HeadersUnusable: something is no `name=value`.
    """
    headers = {}
    for number, part in enumerate(re.split(r"[,\n]", text), 1):
        if not part.strip():
            continue
        name, _, value = (unquote(piece).strip() for piece in part.partition("="))
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise HeadersUnusable(f"header {number} is no name=value, with values percent-encoded")
        headers[name.lower()] = value
    return headers


class HeadersFile:
    """Adds the headers of a file to requests: what `requests` takes for an authentication."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, request: "PreparedRequest") -> "PreparedRequest":
        """The request, with the headers.

        Raises:
            HeadersUnusable: the file can't be read or is no list of headers.
        """
        request.headers.update(self._read())
        return request

    def _read(self) -> dict[str, str]:
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise HeadersUnusable(f"{self._path} can't be read: {type(error).__name__}") from None
        try:
            return parse_headers(text)
        except HeadersUnusable as error:
            raise HeadersUnusable(f"{self._path}: {error}") from None
