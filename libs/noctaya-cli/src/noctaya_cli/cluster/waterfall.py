"""One cold start as a picture: a bar for each phase on one axis of time, as text or as SVG. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from noctaya_api.activation_timeline import spans
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord

from noctaya_cli.terminal import xml_text

MEANING: Final = {
    "demand": "the gateway told KEDA",
    "autoscaling": "KEDA saw the demand and wrote a replica",
    "scheduling": "a node was found",
    "weights": "the weights were there",
    "image_pull": "the images were on the node",
    "start": "the engine's process started",
    "load": "the engine loaded the model and passed its probe",
    "first_byte": "the first answer began",
}
"""What had happened at the end of each phase."""

_LABEL: Final = {"image_pull": "image pull", "first_byte": "first byte"}
LEFT, RIGHT, ROW, TOP = 110, 620, 26, 54
"""Of an SVG: where bars begin and end, the height of a row, the first one."""
COARSE: Final = "  the Pod's times are whole seconds: start, load and first byte may be off by one"
_NEXT: Final = {
    "": "demand",
    "demand": "autoscaling",
    "autoscaling": "scheduling",
    "scheduling": "on the node",
    "weights": "image pull",
    "image_pull": "start",
    "start": "load",
    "load": "load",
}
"""What is going on after each phase; a node has weights to wait for, images to pull, containers to start."""
_NAMES: Final = 12
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One phase, in seconds since the request."""

    phase: str
    begin: float
    end: float
    going_on: bool = False
    """Whether it has not come to its end."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.begin

    @property
    def label(self) -> str:
        """Its name for people."""
        return _LABEL.get(self.phase, self.phase)


@dataclass(frozen=True, kw_only=True)
class Waterfall:
    """A cold start ready to be drawn."""

    title: str
    bars: tuple[Bar, ...]
    total: float
    """Seconds until the first byte, until ready, or until the last thing known."""
    ready: float | None
    """Seconds until ready; None when it never was."""
    activation_id: str = ""
    note: str = ""
    failed: bool = False
    coarse: bool = False
    """Whether some of its times are whole seconds."""

    @property
    def finished(self) -> bool:
        """Whether the replica was ready."""
        return self.ready is not None

    @property
    def answered(self) -> bool:
        """Whether the first byte is known."""
        return any(bar.phase == "first_byte" for bar in self.bars)

    @property
    def end(self) -> str:
        """What its total is the time until."""
        if self.answered:
            return "answered"
        return "ready" if self.finished else "given up" if self.failed else "so far"

    @property
    def longest(self) -> Bar | None:
        """The phase most of the time went into."""
        return max(self.bars, key=lambda bar: bar.seconds, default=None)


def waterfall_of(record: ActivationRecord, *, service: str, now: datetime) -> Waterfall:
    """The picture of a record as it stands at `now`."""
    begun = datetime.fromisoformat(record.requested)
    bars = tuple(
        Bar(phase=name, begin=_since(begun, start), end=_since(begun, end))
        for name, start, end in spans(record)
    )
    going_on = record.outcome is ActivationOutcome.IN_PROGRESS and record.ready is None
    ready = _since(begun, datetime.fromisoformat(record.ready)) if record.ready is not None else None
    if ready is not None:
        total = max(ready, max((bar.end for bar in bars), default=0.0))
    elif going_on or record.ended is not None:
        total = _since(begun, now if record.ended is None else datetime.fromisoformat(record.ended))
        known = max((bar.end for bar in bars), default=0.0)
        after = _NEXT.get(bars[-1].phase if bars else "", "load")
        bars = (*bars, Bar(phase=after, begin=known, end=max(known, total), going_on=True))
    else:
        total = max((bar.end for bar in bars), default=0.0)
    return Waterfall(
        title=(
            f"{service}: {_headline(record, total=total if ready is None else ready)}, "
            f"{age((now - begun).total_seconds())} ago"
        ),
        bars=bars,
        total=total,
        ready=ready,
        activation_id=record.id or "",
        note=record.message or "",
        failed=record.outcome is ActivationOutcome.FAILED,
        coarse=any(time is not None and "." not in time for time in (record.started, record.ready)),
    )


def draw_text(picture: Waterfall, *, width: int = 80) -> Iterator[str]:
    """Lines of at most `width` columns (at least 36); only the activation's id is never cut."""
    room = max(10, width - _NAMES - 14)
    yield from _folded(picture.title, width=width)
    longest = picture.longest
    for bar in picture.bars:
        drawn = _bar(bar, total=picture.total, room=room)
        if bar.going_on:
            drawn = re.sub(r"\S", "░", drawn)
        share = f"{bar.seconds:8.2f} s"
        mark = " ←" if bar is longest and len(picture.bars) > 1 else ""
        yield f"  {bar.label:<{_NAMES}}{drawn:<{room}}{share}{mark}"
    if not picture.bars:
        yield "  nothing has happened"
    if picture.ready is not None:
        yield f"  {'ready':<{_NAMES}}{'':<{room}}{picture.ready:8.2f} s"
    if picture.ready is None or picture.answered:
        yield f"  {picture.end:<{_NAMES}}{'':<{room}}{picture.total:8.2f} s"
    if longest is not None and picture.finished and picture.total > 0:
        share_of = round(100 * longest.seconds / picture.total)
        meaning = MEANING.get(longest.phase, longest.phase)
        yield from _folded(f"  most of it: {longest.label}, {share_of} % ({meaning})", width=width)
    if picture.coarse:
        yield from _folded(COARSE, width=width)
    if picture.note:
        yield from _folded(f"  in the way: {' '.join(picture.note.split())}", width=width)
    if picture.activation_id:
        yield f"  activation: {picture.activation_id}"


def draw_svg(
    picture: Waterfall, *, below: Callable[[int], Iterable[str]] = lambda top: (), rows: int = 0
) -> str:
    """The same as a stand-alone SVG file, light and dark alike.

    Args:
        picture: what to draw.
        below: draws further rows, given where they begin.
        rows: how many those are.
    """
    row, left, right, top = ROW, LEFT, RIGHT, TOP
    height = top + row * (len(picture.bars) + rows) + 34 + (20 if rows else 0)
    scale = (right - left) / picture.total if picture.total > 0 else 0.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<style>text{fill:#24292f}.bar{fill:#0969da}.long{fill:#bc4c00}.axis{stroke:#8c959f}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#58a6ff}.long{fill:#f0883e}}</style>",
        f"<title>{xml_text(picture.title)}</title>",
        f'<text x="16" y="28" font-size="15" font-weight="600">{xml_text(picture.title)}</text>',
    ]
    for index, bar in enumerate(picture.bars):
        y = top + row * index
        kind = "long" if bar is picture.longest and len(picture.bars) > 1 else "bar"
        faint = ' opacity="0.5"' if bar.going_on else ""
        parts += [
            f'<text x="{left - 10}" y="{y + 13}" text-anchor="end">{xml_text(bar.label)}</text>',
            f'<rect class="{kind}" x="{left + bar.begin * scale:.1f}" y="{y}" rx="3" height="17"{faint} '
            f'width="{max(2.0, bar.seconds * scale):.1f}">'
            f"<title>{xml_text(MEANING.get(bar.phase, ''))}</title></rect>",
            f'<text x="{right + 90}" y="{y + 13}" text-anchor="end">{bar.seconds:.2f} s</text>',
        ]
    base = top + row * len(picture.bars)
    parts += [
        f'<line class="axis" x1="{left}" x2="{right}" y1="{base}" y2="{base}"/>',
        f'<text x="{left}" y="{base + 18}">0</text>',
        f'<text x="{right}" y="{base + 18}" text-anchor="end">{picture.total:.2f} s {picture.end}</text>',
        *below(base + 44),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _folded(text: str, *, width: int) -> list[str]:
    return textwrap.wrap(
        text, width=max(36, width), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _bar(bar: Bar, *, total: float, room: int) -> str:
    if total <= 0:
        return ""
    begin = min(room - 1, int(bar.begin / total * room))
    eighths = max(1, round(bar.seconds / total * room * 8))
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[rest] if rest else "")
    return " " * begin + drawn[: room - begin]


def _headline(record: ActivationRecord, *, total: float) -> str:
    match record.outcome:
        case ActivationOutcome.SUCCEEDED:
            return f"cold start of {total:.2f} s"
        case ActivationOutcome.FAILED:
            return "cold start that failed"
    return f"cold start going on for {total:.2f} s"


def _since(begun: datetime, moment: datetime) -> float:
    return max(0.0, (moment - begun).total_seconds())


def age(seconds: float) -> str:
    """A length of time as kubectl writes ages: `42s`, `5m`, `3h`, `2d`."""
    whole = max(0, int(seconds))
    for limit, unit, size in ((120, "s", 1), (7200, "m", 60), (172800, "h", 3600)):
        if whole < limit:
            return f"{whole // size}{unit}"
    return f"{whole // 86400}d"
