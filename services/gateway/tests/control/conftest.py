"""No event loop is current outside async tests.

looptime's plugin asks the policy for the current loop before every test; on Python 3.11 the first such
question makes one that nobody closes, unless it was said that there is none.
"""

from __future__ import annotations

import asyncio

asyncio.set_event_loop(None)
