"""One event loop a test, and none before."""

import asyncio

# pytest-asyncio asks for "the" loop before it makes its own; without this the policy would create one that
# nobody closes, and its end would be a warning at an odd place.
asyncio.set_event_loop(None)
