"""Names as people type them, held to what Kubernetes can have stored under them. Pure.

A name goes into the path of a request, where `..`, an empty one or `models/chat` would ask for something
else.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 253
"""Characters of a DNS subdomain; what a service or a namespace may really have is less."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class NotAName(ValueError):
    """Nothing can have this name; the message says what to type instead."""


def service_name(text: str) -> str:
    """The name of an LLMService. Raises NotAName."""
    before, slash, name = text.partition("/")
    if slash and before.lower() in {"llmservice", "llmservices", "llm"} and _valid(name):
        return name
    if slash and _valid(before) and _valid(name):
        raise NotAName(f"{text!r} is a namespace and a name: {name} -n {before}")
    return _checked(text)


def namespace_name(text: str | None) -> str | None:
    """The name of a namespace, or None as it came. Raises NotAName."""
    return None if text is None else _checked(text)


def _checked(text: str) -> str:
    if not _valid(text):
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise NotAName(f"{shown!r} is no name: lower-case letters, digits and dashes make one")
    return text


def _valid(text: str) -> bool:
    return len(text) <= LONGEST and _NAME.fullmatch(text) is not None
