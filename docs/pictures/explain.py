"""Draws ``explain.svg``: what ``noctaya explain SERVICE -o svg`` makes of ``explain.json``.

The data is the LLMService of a real cold start as the API server gave it, and when it was read.
``python docs/pictures/explain.py`` writes the picture, ``--check`` fails when the committed one is not what
the data gives.
"""

import argparse
import json
import sys
from datetime import datetime
from pathlib import Path

from noctaya_cli.cluster.explain import Explanation, draw_explanation, svg_of
from noctaya_cli.cluster.former_starts import formers_of
from noctaya_cli.cluster.service_view import view_of
from noctaya_cli.cluster.waterfall import waterfall_of

HERE = Path(__file__).parent
TEXT_WIDTH = 92


def explanation() -> Explanation:
    """What the command has of the data; demand and Events are not in it."""
    raw = json.loads((HERE / "explain.json").read_text())
    now = datetime.fromisoformat(raw["read"])
    service = view_of(raw["service"])
    name = f"{service.namespace}/{service.name}"
    return Explanation(
        service=service,
        numbers=None,
        picture=waterfall_of(service.activation, service=name, now=now) if service.activation else None,
        former=formers_of(service.former, service=name, now=now),
        events=(),
        remarks=(),
        now=now,
    )


def main() -> int:
    """Write or check; ``--text`` prints what the command prints instead."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--text", action="store_true")
    given = parser.parse_args()
    found = explanation()
    if given.text:
        print("\n".join(draw_explanation(found, width=TEXT_WIDTH)))
        return 0
    drawn, target = svg_of(found) or "", HERE / "explain.svg"
    if not given.check:
        target.write_text(drawn)
        return 0
    if target.is_file() and target.read_text() == drawn:
        return 0
    print(f"{target} is not what its data gives: run python docs/pictures/explain.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
