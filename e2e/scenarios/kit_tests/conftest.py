"""No event loop is current outside async tests.

looptime's plugin asks for the current loop before every test. On Python 3.11 the first such question makes
one that nobody closes, unless it was said that there is none.
"""

import asyncio

asyncio.set_event_loop(None)
