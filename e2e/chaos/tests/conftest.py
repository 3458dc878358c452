"""What tests of the verdict need: outcomes and sightings in a word."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

# looptime asks for the current loop before tests that have none as well, which would make one nobody closes.
asyncio.set_event_loop(None)

sys.path.insert(0, str(Path(__file__).parent))
