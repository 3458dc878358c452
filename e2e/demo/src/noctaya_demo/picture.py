"""A cold start as a picture of bars, one a step. Pure."""

from rich.table import Table
from rich.text import Text

WIDTH = 44
COLOURS = ("white", "cyan", "yellow", "green", "magenta")


def draw_timeline(marks: list[tuple[str, float]], *, width: int = WIDTH) -> Table:
    """`marks` are names with moments in seconds of one clock, the first is the start.

    Each bar begins where the step before it ended.
    """
    start = marks[0][1]
    total = max(marks[-1][1] - start, 1e-9)
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right", style="dim")
    table.add_column()
    reached = 0.0
    for index, (name, moment) in enumerate(marks):
        since = max(moment - start, reached)
        left, right = round(reached / total * width), round(since / total * width)
        bar = " " * left + ("━" * max(right - left, 1) if index else "┃")
        step = f"+{(since - reached) * 1000:.0f} ms" if index else ""
        table.add_row(name, f"{since:.2f} s", step, Text(bar, style=COLOURS[index % len(COLOURS)]))
        reached = since
    return table
