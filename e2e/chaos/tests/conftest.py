"""What tests of the verdict need: outcomes and sightings in a word."""

from __future__ import annotations

import asyncio

# looptime asks for the current loop before tests that have none as well, which would make one nobody closes.
asyncio.set_event_loop(None)
