"""Secrets that can be recognised wherever they turn up, in the forms that programs write them in."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

CONTEXT = 60
"""Bytes on each side that a finding shows."""


def forms(value: str) -> Iterator[bytes]:
    """A secret as it is, and as base64, hexadecimal and URLs have it; the last also at the shifts that a
    prefix of one or two bytes gives base64."""
    raw = value.encode()
    yield raw
    yield raw.hex().encode()
    yield quote(value, safe="").encode()
    for shift in range(3):
        # What surrounds the secret changes the characters at its ends.
        whole = base64.b64encode(b"x" * shift + raw + b"xx").rstrip(b"=")
        yield whole[4 : 4 + (len(raw) // 3 - 2) * 4]


def leaks(secrets: Mapping[str, str], places: Mapping[str, str | bytes]) -> list[str]:
    """Each secret found, with the place and what stands around it."""
    found = []
    for place, content in places.items():
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        for name, value in secrets.items():
            for form in forms(value):
                at = data.find(form)
                if at >= 0:
                    around = data[max(0, at - CONTEXT) : at + len(form) + CONTEXT]
                    found.append(f"{name} in {place}: {around!r}")
                    break
    return found


def files_below(folder: Path, *, but: Iterable[Path] = ()) -> dict[str, bytes]:
    """Contents of all files, by name, but for those of some folders."""
    left_out = tuple(but)
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not any(file.is_relative_to(other) for other in left_out)
    }
