"""Waiting for something to become true, with an account of what was there instead when it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

EVERY = 0.2
"""Seconds between looks: a look is a request or two."""


class NotYet(AssertionError):
    """It did not become true in time."""


def until(
    look: Callable[[], T],
    *,
    within: float,
    what: str,
    seen: Callable[[], object] = lambda: "",
    every: float = EVERY,
) -> T:
    """The first true value of `look`, asked at least twice.

    `seen` is asked for the account, which goes into the message of NotYet after `within` seconds. An
    AssertionError of `look` counts as "not yet" and is told too.
    """
    end = time.monotonic() + within
    attempts, last = 0, ""
    while True:
        attempts += 1
        try:
            if found := look():
                return found
        except AssertionError as error:
            last = f" ({error})"
        if time.monotonic() >= end and attempts > 1:
            raise NotYet(f"not within {within:g} s: {what}{last}\n{seen()}".rstrip())
        time.sleep(every)


def during(
    look: Callable[[], bool], *, seconds: float, what: str, seen: Callable[[], object] = lambda: ""
) -> None:
    """`look` stays true for so long; AssertionError the moment it is not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert look(), (
            f"no longer so, {end - time.monotonic():.1f} s before the end: {what}\n{seen()}".rstrip()
        )
        time.sleep(EVERY)
