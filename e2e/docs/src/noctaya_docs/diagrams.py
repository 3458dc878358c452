"""Diagrams as SVG: boxes with arrows, and who says what to whom.

They are pictures, so that they are the same on a forge and in the site without a network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

INK, FAINT, LINE, FILL, GROUP = "#1f2937", "#6b7280", "#94a3b8", "#f8fafc", "#eef2ff"
FONT: Final = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
LANE, TOP, STEP = 215, 64, 34


@dataclass(frozen=True)
class Box:
    """A part: name, words below it, left, top, width, height; a `group` is drawn behind the others."""

    name: str
    below: str
    x: float
    y: float
    width: float
    height: float
    group: bool = False

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True)
class Arrow:
    """From a box to another, with words; `along` says where on the line they stand, 0 to 1."""

    start: str
    end: str
    words: str = ""
    dashed: bool = False
    along: float = 0.5


@dataclass(frozen=True)
class Boxes:
    """A diagram of boxes."""

    title: str
    width: int
    height: int
    boxes: dict[str, Box]
    arrows: tuple[Arrow, ...]

    def draw(self) -> str:
        """The picture."""
        lines: list[str] = []
        for box in sorted(self.boxes.values(), key=lambda each: not each.group):
            lines += draw_box(box)
        for arrow in self.arrows:
            lines += draw_arrow(arrow, self.boxes[arrow.start], self.boxes[arrow.end])
        return page(self.title, self.width, self.height, lines)


@dataclass(frozen=True)
class Said:
    """One message: lanes from and to, words; to itself it is a note."""

    start: int
    end: int
    words: str
    dashed: bool = False


@dataclass(frozen=True)
class Sequence:
    """Who says what to whom, from top to bottom."""

    title: str
    lanes: tuple[str, ...]
    said: tuple[Said, ...]

    def draw(self) -> str:
        """The picture."""
        width, height = LANE * len(self.lanes), TOP + STEP * len(self.said) + 20
        lines: list[str] = []
        for number, name in enumerate(self.lanes):
            x = LANE / 2 + LANE * number
            lines.append(line((x, 46), (x, height - 12), dashed=True))
            lines += draw_box(Box(name, "", x - 65, 14, 130, 32))
        for number, each in enumerate(self.said, start=1):
            lines += self._message(each, TOP + STEP * (number - 0.2))
        return page(self.title, width, height, lines)

    def _message(self, each: Said, y: float) -> Iterator[str]:
        start, end = (LANE / 2 + LANE * lane for lane in (each.start, each.end))
        if start == end:
            half = len(each.words) * 3.2 + 10
            place = f'x="{start - half:.0f}" y="{y - 20:.0f}" width="{2 * half:.0f}" height="24" rx="4"'
            yield f'<rect {place} fill="#fef9c3" stroke="#fde68a"/>'
            yield words(start, y - 4, each.words, size=12)
            return
        yield line((start, y), (end - (6 if end > start else -6), y), dashed=each.dashed, head=True)
        yield from on_white((start + end) / 2, y - 6, each.words)


def draw_box(box: Box) -> Iterator[str]:
    """A box with its words."""
    colour = GROUP if box.group else FILL
    place = f'x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="8"'
    yield f'<rect {place} fill="{colour}" stroke="{LINE}"/>'
    x, y = box.middle
    if box.group:
        yield words(box.x + 12, box.y + 20, box.name, fill=FAINT, anchor="start")
        return
    rows = box.below.split("\n") if box.below else []
    first = y + 5 - 8 * len(rows)
    yield words(x, first, box.name, weight="600")
    for number, row in enumerate(rows, start=1):
        yield words(x, first + 16 * number, row, size=12, fill=FAINT)


def draw_arrow(arrow: Arrow, start: Box, end: Box) -> Iterator[str]:
    """A line from border to border, its words on a background of their own."""
    tail, head = border(start, end.middle, 0), border(end, start.middle, 5)
    yield line(tail, head, dashed=arrow.dashed, head=True)
    if arrow.words:
        x = tail[0] + (head[0] - tail[0]) * arrow.along
        y = tail[1] + (head[1] - tail[1]) * arrow.along
        yield from on_white(x, y + 4, arrow.words)


def border(box: Box, towards: tuple[float, float], gap: float) -> tuple[float, float]:
    """Where the line from a box's middle towards a point leaves it, `gap` further out."""
    x, y = box.middle
    across, down = towards[0] - x, towards[1] - y
    length = (across**2 + down**2) ** 0.5
    sides = [box.width / 2 / abs(across)] if across else []
    sides += [box.height / 2 / abs(down)] if down else []
    share = min(sides) + gap / length
    return x + across * share, y + down * share


def line(
    start: tuple[float, float], end: tuple[float, float], *, dashed: bool = False, head: bool = False
) -> str:
    """A line; with a head it is an arrow."""
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    marker = ' marker-end="url(#head)"' if head else ""
    place = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {place} stroke="{LINE if not head else FAINT}" stroke-width="1.4"{dashes}{marker}/>'


def words(
    x: float,
    y: float,
    said: str,
    *,
    size: int = 13,
    fill: str = INK,
    anchor: str = "middle",
    weight: str = "",
) -> str:
    """One line of words; `y` is its baseline."""
    bold = f' font-weight="{weight}"' if weight else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{fill}"{bold}>{escape(said)}</text>'


def on_white(x: float, y: float, said: str) -> Iterator[str]:
    """Words that cover what is behind them."""
    half = len(said) * 3.1 + 5
    place = f'x="{x - half:.0f}" y="{y - 13:.0f}" width="{2 * half:.0f}" height="17" rx="3"'
    yield f'<rect {place} fill="#ffffff" fill-opacity="0.9"/>'
    yield words(x, y, said, size=12)


def page(title: str, width: int, height: int, lines: list[str]) -> str:
    """A whole picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="{FONT}">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{FAINT}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="10" fill="#ffffff" stroke="#e5e7eb"/>',
    )
    return "\n".join([*head, *lines, "</svg>"]) + "\n"
