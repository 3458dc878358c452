"""A measured cold start as data for the picture in the README (docs/pictures/draw.py). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

CLIENT, DEMAND, PROCESS = "client", "demand seen", "model process"
DECIMALS = 3


def describe(marks: Mapping[str, float], *, beats: Sequence[float], ended: float) -> dict[str, Any]:
    """Lanes, bars and heartbeats, in seconds since the request.

    `marks` has the moments `requested`, `activated`, `process started`, `ready` and `first token`, all on
    one clock with `beats` and `ended`, the end of the answer.
    """
    start = marks["requested"]
    at = {name: round(moment - start, DECIMALS) for name, moment in marks.items()}
    end = round(ended - start, DECIMALS)

    def bar(lane: str, begin: float, finish: float, kind: str, label: str) -> dict[str, Any]:
        return {"lane": lane, "start": begin, "end": finish, "kind": kind, "label": label}

    told = f"after {at['activated'] * 1000:.0f} ms"
    return {
        "title": "A cold start as its client lives it",
        "source": "SmolLM2-135M on llama.cpp, started by demand alone; measured by ./dev demo on two cores",
        "lanes": [CLIENT, DEMAND, PROCESS],
        "spans": [
            bar(CLIENT, 0.0, at["first token"], "wait", "held, with heartbeats"),
            bar(CLIENT, at["first token"], end, "work", "tokens"),
            bar(DEMAND, 0.0, at["activated"], "signal", told),
            bar(PROCESS, at["process started"], at["ready"], "start", "starts and loads the weights"),
            bar(PROCESS, at["ready"], end, "work", "serves"),
        ],
        "heartbeats": [round(beat - start, DECIMALS) for beat in beats],
    }
