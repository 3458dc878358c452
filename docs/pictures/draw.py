"""Draws ``cold-start.svg`` from ``cold-start.json``, a cold start as it was measured.

The picture is generated so that it can't drift from its figures: ``python docs/pictures/draw.py`` writes it,
``--check`` fails when the committed file is not what the data gives. New figures come from
``./dev demo --picture docs/pictures/cold-start.json``.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
WIDTH, LEFT, RIGHT, TOP, ROW = 900, 150, 30, 74, 50
INK, FAINT, GRID = "#1f2937", "#6b7280", "#e5e7eb"
COLOURS = {"wait": "#f59e0b", "signal": "#6366f1", "start": "#0ea5e9", "work": "#10b981", "rest": "#9ca3af"}


@dataclass(frozen=True)
class Span:
    """One bar: a lane, seconds since the request, a kind that picks the colour, and the words on it."""

    lane: str
    start: float
    end: float
    kind: str
    label: str


@dataclass(frozen=True)
class ColdStart:
    """What is drawn: headline, lanes from top to bottom, their bars, the instants of the heartbeats."""

    title: str
    source: str
    lanes: tuple[str, ...]
    spans: tuple[Span, ...]
    heartbeats: tuple[float, ...]

    @property
    def end(self) -> float:
        """Seconds from the request to the end of the last bar."""
        return max(span.end for span in self.spans)


def load(path: Path) -> ColdStart:
    """Read the measured data; a missing or misspelt key is a KeyError or TypeError."""
    raw = json.loads(path.read_text())
    return ColdStart(
        title=raw["title"],
        source=raw["source"],
        lanes=tuple(raw["lanes"]),
        spans=tuple(Span(**span) for span in raw["spans"]),
        heartbeats=tuple(raw["heartbeats"]),
    )


def grid_step(end: float) -> float:
    """Seconds between vertical lines: the smallest round step that gives at most nine of them."""
    return next(
        step for step in (0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600) if end / step <= 9
    )


def text(x: float, y: float, words: str, *, size: int = 13, fill: str = INK, anchor: str = "start") -> str:
    """One line of words; ``y`` is its baseline."""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{fill}">{escape(words)}</text>'


def draw_span(span: Span, *, x: float, width: float, y: float) -> list[str]:
    """The bar and its words: inside when they fit, right of it otherwise."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 2):.1f}" height="26" rx="4"'
    bar = f'<rect {place} fill="{COLOURS[span.kind]}"/>'
    inside = len(span.label) * 6.6 + 12 <= width
    if inside:
        words = text(x + 8, y + 18, span.label, size=12, fill="#ffffff")
    else:
        words = text(x + max(width, 2) + 6, y + 18, span.label, size=12, fill=INK)
    return [bar, words]


def render(cold: ColdStart) -> str:
    """The whole SVG document."""
    height = TOP + ROW * len(cold.lanes) + 44
    scale = (WIDTH - LEFT - RIGHT) / cold.end
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif">',
        f"<title>{escape(cold.title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff" stroke="{GRID}"/>',
        text(20, 32, cold.title, size=17),
        text(20, 52, cold.source, size=12, fill=FAINT),
    ]
    bottom = TOP + ROW * len(cold.lanes)
    step = grid_step(cold.end)
    for number in range(int(cold.end / step) + 1):
        x = LEFT + number * step * scale
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>')
        parts.append(text(x, bottom + 18, f"{number * step:g} s", size=11, fill=FAINT, anchor="middle"))
    for row, lane in enumerate(cold.lanes):
        y = TOP + row * ROW
        parts.append(text(20, y + 18, lane))
        for span in cold.spans:
            if span.lane == lane:
                width = (span.end - span.start) * scale
                parts += draw_span(span, x=LEFT + span.start * scale, width=width, y=y)
    for at in cold.heartbeats:
        place = f'cx="{LEFT + at * scale:.1f}" cy="{TOP + 32}" r="3"'
        parts.append(f'<circle {place} fill="#ef4444"><title>heartbeat at {at:.2f} s</title></circle>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main() -> int:
    """Write or check the picture; 1 when it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when the committed picture is stale")
    target, wanted = HERE / "cold-start.svg", render(load(HERE / "cold-start.json"))
    if not parser.parse_args().check:
        target.write_text(wanted)
        return 0
    if target.exists() and target.read_text() == wanted:
        return 0
    print(f"{target} is not what its data gives: run python docs/pictures/draw.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
