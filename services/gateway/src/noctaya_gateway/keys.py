"""Client keys and what each may do, from a file that several keys share (contracts 3.4, decision 0021).

One key a line, as ever; after it, separated by blanks, what is known of it:

    sk-6f1c...  name=batch rpm=60 concurrent=4

`name` is what logs and metrics call the key; without it, it is `key-N` after its place among the keys. `rpm`
and `concurrent` limit the requests a minute and at a time; 0 is no limit, and what is not given is the
service's own limit. Keys of the same name are one client's, so they have the same limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")
"""What a name may look like: a label value of Kubernetes."""
LARGEST = 1_000_000
"""Largest number a limit may have."""


@dataclass(frozen=True)
class KeyLimits:
    """Requests a minute and at a time; 0 is no limit."""

    requests_per_minute: int = 0
    concurrent: int = 0


UNLIMITED = KeyLimits()


@dataclass(frozen=True)
class ClientKey:
    """One key: the secret itself, the name it goes by, and its limits."""

    secret: bytes
    name: str
    limits: KeyLimits

    def __repr__(self) -> str:
        """Never the secret."""
        return f"ClientKey({self.name!r}, {self.limits!r})"


class MalformedKeys(ValueError):
    """A line of the key file can't be understood; the message names the line and holds no key."""


def parse_keys(lines: tuple[bytes, ...], *, default: KeyLimits = UNLIMITED) -> tuple[ClientKey, ...]:
    """The keys of a file; `lines` are its non-blank lines, `default` the limits of keys without their own.

    Raises:
        MalformedKeys: something after a key is no attribute, or two keys of a name differ in their limits.
    """
    keys = tuple(_parse(number, line, default) for number, line in enumerate(lines, 1))
    limits: dict[str, KeyLimits] = {}
    for key in keys:
        if limits.setdefault(key.name, key.limits) != key.limits:
            raise MalformedKeys(
                f"the keys named {key.name!r} have different limits: they share one allowance, so give them "
                "the same rpm= and concurrent="
            )
    return keys


def _parse(number: int, line: bytes, default: KeyLimits) -> ClientKey:
    secret, *words = line.split()
    found: dict[str, str] = {}
    for word in words:
        name, separator, value = word.decode("utf-8", "replace").partition("=")
        if not separator or name not in ("name", "rpm", "concurrent"):
            raise MalformedKeys(
                f"key {number}: what follows the key must be name=, rpm= or concurrent=, separated by blanks"
            )
        if name in found:
            raise MalformedKeys(f"key {number}: {name}= is there twice")
        found[name] = value
    name = found.get("name", f"key-{number}")
    if not NAME.fullmatch(name):
        raise MalformedKeys(
            f"key {number}: a name is 1 to 63 letters, digits, dashes, dots and underscores, and begins and "
            "ends with a letter or digit"
        )
    limits = KeyLimits(
        _limit(number, "rpm", found, default.requests_per_minute),
        _limit(number, "concurrent", found, default.concurrent),
    )
    return ClientKey(secret, name, limits)


def _limit(number: int, name: str, found: dict[str, str], default: int) -> int:
    value = found.get(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) <= 7 and int(value) <= LARGEST):
        raise MalformedKeys(f"key {number}: {name}= is a whole number from 0 (no limit) to {LARGEST}")
    return int(value)
