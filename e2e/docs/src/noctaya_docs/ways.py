"""How a command of the documentation is proven: where it is run, or why it can't be run here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Place(StrEnum):
    """Where a command is run."""

    HERE = "here"
    """In a checkout, without any cluster."""
    API = "api"
    """On a real API server with the real operator, page by page in order; kubelet and KEDA are stand-ins."""
    CLUSTER = "cluster"
    """On a cluster with nodes, by e2e/scenarios/tests/test_docs.py."""
    TEST = "test"
    """By a test of its own, or by a tox environment that does nothing else; `why` names it."""
    OUTSIDE = "outside"
    """Nowhere: it takes what this repository can't bring; `why` says what."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """How one command is proven."""

    place: Place
    why: str = ""
    says: str = ""
    """A regular expression that what it prints has to match somewhere."""
    codes: tuple[int, ...] = (0,)
    """Exit codes that are right."""


def here(says: str = "", *, codes: tuple[int, ...] = (0,)) -> Way:
    """Run in a checkout."""
    return Way(place=Place.HERE, says=says, codes=codes)


def api(says: str = "", *, codes: tuple[int, ...] = (0,)) -> Way:
    """Run on an API server, in the order of the page."""
    return Way(place=Place.API, says=says, codes=codes)


def cluster(says: str = "", *, codes: tuple[int, ...] = (0,)) -> Way:
    """Run on a cluster, in the order of the page."""
    return Way(place=Place.CLUSTER, says=says, codes=codes)


def test(what: str) -> Way:
    """Proven by a test file, as `path` or `path::name`, or by a tox environment, as `tox:name`."""
    return Way(place=Place.TEST, why=what)


def outside(reason: str) -> Way:
    """Can't be run here."""
    return Way(place=Place.OUTSIDE, why=reason)
