"""What somebody might write into a name, a message, a log or an answer, and what a terminal may be shown."""

from __future__ import annotations

from hypothesis import strategies as st

TRICKS = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "over\rwritten",
    "two\nlines",
    "\u202eesrever",
    "\u2028",
    "\x00",
    "\x7f",
    "\ud800",
    "\U000e0041",
    "<script>alert(1)</script>",
    "]]>&\"'",
    "{reason} %s [bold]",
    "long" * 2000,
)
TEXT = st.text(st.characters(exclude_categories=()), max_size=20) | st.sampled_from(TRICKS)
SCALARS = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | TEXT
FIELDS = st.sampled_from(
    [
        "type", "status", "reason", "message", "lastTransitionTime", "phase", "replicas", "conditions",
        "state", "bytesDone", "bytesTotal", "bytesPerSecond", "until", "requested", "ready", "outcome", "id",
    ]
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | TEXT, inner, max_size=5),
    max_leaves=12,
)
NUMBERS = st.sampled_from(["1", "0.0", "NaN", "+Inf", "1e999", "-5", "9" * 400, "\x1b[31m", ""]) | TEXT


def raw(shown: str) -> set[str]:
    """Characters that a terminal would obey instead of showing them."""
    return {letter for letter in shown if not letter.isprintable() and letter != "\n"}
