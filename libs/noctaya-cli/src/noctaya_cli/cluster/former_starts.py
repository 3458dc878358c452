"""The cold starts before the last one: a line each on one scale, a letter of each phase for its share. Pure.

A phase that is too short for a letter of its own is drawn over by the next one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from noctaya_api.activation_timeline import PHASES
from noctaya_api.v1alpha1.llmservice_status import ActivationRecord

from noctaya_cli.cluster.waterfall import LEFT, RIGHT, ROW, Waterfall, age, waterfall_of
from noctaya_cli.terminal import xml_text

LETTERS: Final = {
    "demand": "d",
    "autoscaling": "a",
    "scheduling": "s",
    "weights": "w",
    "image_pull": "i",
    "start": "e",
    "load": "l",
    "first_byte": "b",
}
_WORDS: Final = {"image_pull": "image pull", "start": "engine start", "first_byte": "first byte"}
_ROOM: Final = 34


def formers_of(
    records: Sequence[ActivationRecord], *, service: str, now: datetime
) -> tuple[tuple[str, Waterfall], ...]:
    """Age and picture of each record, in their order."""
    return tuple(
        (
            age((now - datetime.fromisoformat(record.requested)).total_seconds()),
            waterfall_of(record, service=service, now=now),
        )
        for record in records
    )


def draw_former_text(formers: Sequence[tuple[str, Waterfall]], *, width: int = 80) -> Iterator[str]:
    """Lines of at most `width` columns (at least 36)."""
    if not formers:
        return
    drawn = {bar.phase for _, picture in formers for bar in picture.bars}
    legend = ", ".join(f"{LETTERS[phase]} {_WORDS.get(phase, phase)}" for phase in PHASES if phase in drawn)
    head = f"Before that{f' ({legend})' if legend else ''}:"
    yield from textwrap.wrap(head, width=max(36, width), subsequent_indent="  ")
    longest = max(picture.total for _, picture in formers)
    room = max(10, width - _ROOM)
    for old, picture in formers:
        spent = f"{picture.total:.2f} s" if picture.finished else "failed"
        yield f"  {old:>5} ago {spent:>11}  {_letters(picture, longest=longest, room=room)}".rstrip()


def draw_former_svg(formers: Sequence[tuple[str, Waterfall]], *, top: int) -> Iterator[str]:
    """Rows of a picture that begin at `top`, each a bar of segments on a scale of their own."""
    longest = max((picture.total for _, picture in formers), default=0.0)
    scale = (RIGHT - LEFT) / longest if longest > 0 else 0.0
    for number, (old, picture) in enumerate(formers):
        y = top + ROW * number
        yield f'<text x="{LEFT - 10}" y="{y + 13}" text-anchor="end">{xml_text(old)} ago</text>'
        for bar in picture.bars:
            kind = "long" if bar is picture.longest else "bar"
            yield (
                f'<rect class="{kind}" x="{LEFT + bar.begin * scale:.1f}" y="{y}" height="17" '
                f'width="{max(1.0, bar.seconds * scale - 1):.1f}">'
                f"<title>{xml_text(bar.label)} {bar.seconds:.2f} s</title></rect>"
            )
        spent = f"{picture.total:.2f} s" if picture.finished else "failed"
        yield f'<text x="{RIGHT + 90}" y="{y + 13}" text-anchor="end">{spent}</text>'


def _letters(picture: Waterfall, *, longest: float, room: int) -> str:
    if longest <= 0:
        return ""
    cells = [" "] * room
    for bar in picture.bars:
        begin = min(room - 1, int(bar.begin / longest * room))
        end = max(begin + 1, min(room, round(bar.end / longest * room)))
        cells[begin:end] = LETTERS.get(bar.phase, "?") * (end - begin)
    return "".join(cells)
