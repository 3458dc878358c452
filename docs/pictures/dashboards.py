"""Draws the dashboards, one SVG each, from ``dashboards.json``: what Prometheus answered to their queries.

Grafana draws them for whoever has it; these pictures need nothing but Python. The answers are those of a
running system: ``python -m noctaya_monitoring.capture docs/pictures/dashboards.json``. The pictures are
written without an argument; ``--check`` fails when a committed one is not what the answers give.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
COLUMN, ROW, GAP, HEAD = 50, 27, 8, 56
LEFT, RIGHT, TOP, LINE = 46, 10, 30, 15
LEGEND_LINES = 2
OVERFLOW = 24
INK, FAINT, GRID, GROUND = "#1f2937", "#6b7280", "#e5e7eb", "#f3f4f6"
PALETTE = ("#0ea5e9", "#f59e0b", "#10b981", "#6366f1", "#ef4444", "#8b5cf6", "#14b8a6", "#ec4899", "#84cc16")
UNITS = {"percentunit": " %", "s": " s", "reqps": "/s", "ops": "/s", "short": ""}
HEAT_COLUMNS = 40
LETTER = 5.9
"""Mean width of a letter of size 11, in pixels."""

Values: TypeAlias = Sequence[float | None]


@dataclass(frozen=True)
class Series:
    """One line of a panel; None where there is no answer."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Frame:
    """Where a panel's plot is, in pixels, and the largest value it shows."""

    x: float
    y: float
    width: float
    height: float
    top: float

    def across(self, share: float) -> float:
        """Of a share of the time."""
        return self.x + share * self.width

    def up(self, value: float) -> float:
        """Of a value."""
        return self.y + self.height - self.height * min(value / self.top, 1.0)


def text(x: float, y: float, words: str, *, size: int = 11, fill: str = INK, anchor: str = "start") -> str:
    """One line of words; ``y`` is its baseline."""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{fill}">{escape(words)}</text>'


def rectangle(x: float, y: float, width: float, height: float, *, fill: str, more: str = "") -> str:
    """A filled rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"{more}/>'


def nice(value: float) -> float:
    """The smallest of 1, 2, 5 and their tens that is not below."""
    if value <= 0:
        return 1.0
    power = 10.0 ** len(str(int(value))) if value >= 1 else 1.0
    while power / 10 >= value:
        power /= 10
    return next(step * power / 10 for step in (1, 2, 2.5, 4, 5, 8, 10) if step * power / 10 >= value)


def number(value: float, unit: str) -> str:
    """A value with its unit, as short as it can be."""
    if unit == "percentunit":
        value *= 100
    return f"{value:.3g}{UNITS.get(unit, '')}"


def stacked(series: Sequence[Series]) -> list[Values]:
    """The upper edge of each series on those below; the lowest first."""
    edges: list[Values] = []
    below = [0.0] * len(series[0].values) if series else []
    for each in series:
        below = [base + (value or 0.0) for base, value in zip(below, each.values, strict=True)]
        edges.append(below)
    return edges


def pieces(values: Values) -> Iterator[list[tuple[int, float]]]:
    """Runs of points without a hole."""
    run: list[tuple[int, float]] = []
    for index, value in enumerate(values):
        if value is not None:
            run.append((index, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def line(values: Values, frame: Frame, colour: str) -> list[str]:
    """A curve; a single point is a dot."""
    last, drawn = max(len(values) - 1, 1), []
    for run in pieces(values):
        points = " ".join(f"{frame.across(at / last):.1f},{frame.up(value):.1f}" for at, value in run)
        if len(run) == 1:
            x, _, y = points.partition(",")
            drawn.append(f'<circle cx="{x}" cy="{y}" r="2" fill="{colour}"/>')
        else:
            drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    return drawn


def area(lower: Values, upper: Values, frame: Frame, colour: str) -> list[str]:
    """What is between two edges."""
    last = max(len(upper) - 1, 1)
    forth = [f"{frame.across(at / last):.1f},{frame.up(value or 0):.1f}" for at, value in enumerate(upper)]
    back = [f"{frame.across(at / last):.1f},{frame.up(value or 0):.1f}" for at, value in enumerate(lower)]
    points = " ".join([*forth, *reversed(back)])
    return [f'<polygon points="{points}" fill="{colour}" fill-opacity="0.3"/>']


def curves(series: Sequence[Series], frame: Frame, *, stack: bool) -> list[str]:
    """All series of a panel."""
    drawn: list[str] = []
    edges = stacked(series) if stack else [each.values for each in series]
    lower: Values = [0.0] * len(edges[0]) if edges else []
    for index, edge in enumerate(edges):
        colour = PALETTE[index % len(PALETTE)]
        if stack:
            drawn += area(lower, edge, frame, colour)
            lower = edge
        drawn += line(edge, frame, colour)
    return drawn


def axes(frame: Frame, *, unit: str, seconds: float) -> list[str]:
    """Lines and numbers."""
    drawn = []
    for part in range(5):
        y = frame.up(frame.top * part / 4)
        drawn.append(
            f'<line x1="{frame.x:.1f}" y1="{y:.1f}" x2="{frame.x + frame.width:.1f}" y2="{y:.1f}" '
            f'stroke="{GRID}"/>'
        )
        if part % 2 == 0:
            words = number(frame.top * part / 4, unit)
            drawn.append(text(frame.x - 5, y + 4, words, size=10, fill=FAINT, anchor="end"))
    for minute in range(int(seconds // 60) + 1):
        x, anchor = frame.across(minute * 60 / seconds), "middle"
        if minute * 60 >= seconds:
            anchor = "end"
        words = f"{minute} min"
        drawn.append(text(x, frame.y + frame.height + 13, words, size=10, fill=FAINT, anchor=anchor))
    return drawn


def legend(series: Sequence[Series], *, x: float, y: float, width: float) -> list[str]:
    """Names with their colours, in at most two lines; what has no room is counted."""
    drawn, at, row = [], x, 0
    for index, each in enumerate(series):
        room = 16 + len(each.name) * LETTER + 8
        if at + room > x + width - OVERFLOW and at > x:
            at, row = x, row + 1
        if row >= LEGEND_LINES:
            last = y + (LEGEND_LINES - 1) * LINE - 2
            drawn.append(text(x + width, last, f"+ {len(series) - index}", size=10, fill=FAINT, anchor="end"))
            break
        colour = PALETTE[index % len(PALETTE)]
        drawn.append(rectangle(at, y + row * LINE - 8, 10, 4, fill=colour))
        drawn.append(text(at + 14, y + row * LINE - 2, each.name, size=10, fill=FAINT))
        at += room
    return drawn


def bars(series: Sequence[Series], frame: Frame, *, unit: str) -> list[str]:
    """The last value of each series as a bar with its name."""
    drawn = []
    height = min(24.0, frame.height / max(len(series), 1))
    for index, each in enumerate(series):
        value = next((found for found in reversed(each.values) if found is not None), 0.0)
        y, colour = frame.y + index * height, PALETTE[index % len(PALETTE)]
        drawn.append(text(frame.x, y + 10, each.name or "(none yet)", size=10, fill=FAINT))
        room = frame.width * 0.45
        drawn.append(rectangle(frame.x + room, y + 2, frame.width * 0.4, 10, fill=GROUND))
        drawn.append(rectangle(frame.x + room, y + 2, frame.width * 0.4 * value / frame.top, 10, fill=colour))
        drawn.append(text(frame.x + frame.width, y + 11, number(value, unit), anchor="end"))
    return drawn


def heat(series: Sequence[Series], frame: Frame) -> list[str]:
    """How many observations each bucket has; buckets are cumulative, as Prometheus has them."""
    buckets = sorted(series, key=lambda each: float(each.name))
    cells: list[tuple[int, int, float]] = []
    count = len(buckets[0].values) if buckets else 0
    columns = min(HEAT_COLUMNS, count)
    for column in range(columns):
        below, at = 0.0, (column + 1) * count // columns - 1
        for row, bucket in enumerate(buckets):
            value = bucket.values[at] or 0.0
            cells.append((column, row, max(0.0, value - below)))
            below = max(below, value)
    most = max((value for _, _, value in cells), default=0.0) or 1.0
    width, height = frame.width / max(columns, 1), frame.height / max(len(buckets), 1)
    drawn = [
        rectangle(
            frame.x + column * width,
            frame.y + frame.height - (row + 1) * height,
            width,
            height,
            fill=PALETTE[1],
            more=f' fill-opacity="{0.15 + 0.85 * value / most:.2f}"',
        )
        for column, row, value in cells
        if value > 0
    ]
    for row, bucket in enumerate(buckets):
        y = frame.y + frame.height - (row + 0.5) * height + 4
        drawn.append(text(frame.x - 5, y, f"{bucket.name} s", size=9, fill=FAINT, anchor="end"))
    return drawn


def peak(series: Series) -> float:
    """The largest value of one series."""
    return max((value for value in series.values if value is not None), default=0.0)


def highest(series: Sequence[Series], *, stack: bool) -> float:
    """The largest value a panel has to show."""
    rows = stacked(series) if stack else [each.values for each in series]
    return max((value for row in rows for value in row if value is not None), default=0.0)


def panel(given: dict[str, Any], *, seconds: float) -> list[str]:
    """One panel in its place."""
    place = given["place"]
    x, y = place["x"] * COLUMN + GAP / 2, HEAD + place["y"] * ROW + GAP / 2
    width, height = place["w"] * COLUMN - GAP, place["h"] * ROW - GAP
    series = [Series(each["name"], tuple(each["values"])) for each in given["series"]]
    drawn = [
        rectangle(x, y, width, height, fill="#ffffff", more=f' rx="4" stroke="{GRID}"'),
        text(x + 10, y + 18, given["title"], size=12),
    ]
    top = nice(highest(series, stack=given["stacked"]))
    if given["kind"] == "bargauge":
        inside = Frame(x + 12, y + TOP, width - 24, height - TOP - 8, top)
        return [*drawn, *bars(series, inside, unit=given["unit"])]
    below = 20 + LEGEND_LINES * LINE
    frame = Frame(x + LEFT, y + TOP, width - LEFT - RIGHT, height - TOP - below, top)
    if given["kind"] == "heatmap":
        frame = Frame(frame.x, frame.y, frame.width, height - TOP - 22, top)
        minutes = axes(frame, unit="", seconds=seconds)[-int(seconds // 60) - 1 :]
        return [*drawn, *heat(series, frame), *minutes]
    series.sort(key=peak, reverse=True)
    drawn += axes(frame, unit=given["unit"], seconds=seconds)
    drawn += curves(series, frame, stack=given["stacked"])
    return drawn + legend(series, x=x + 10, y=y + height - LINE, width=width - 20)


def render(dashboard: dict[str, Any], *, source: str, seconds: float) -> str:
    """The SVG document of one dashboard."""
    panels = dashboard["panels"]
    width = 24 * COLUMN
    height = HEAD + max(each["place"]["y"] + each["place"]["h"] for each in panels) * ROW + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif">',
        f"<title>{escape(dashboard['title'])}</title>",
        rectangle(0, 0, width, height, fill=GROUND, more=' rx="8"'),
        text(14, 26, dashboard["title"], size=17),
        text(14, 44, f"drawn from the answers of {source}", fill=FAINT),
    ]
    for each in panels:
        parts += panel(each, seconds=seconds)
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> int:
    """Write or check the pictures; 1 when one is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a committed picture is stale")
    check = parser.parse_args().check
    data = json.loads((HERE / "dashboards.json").read_text(encoding="utf-8"))
    stale = 0
    for dashboard in data["dashboards"]:
        target = HERE / f"{dashboard['uid']}.svg"
        wanted = render(dashboard, source=data["source"], seconds=data["seconds"])
        if not check:
            target.write_text(wanted, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != wanted:
            print(f"{target} is not what its data gives: run python {Path(__file__).name}", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
