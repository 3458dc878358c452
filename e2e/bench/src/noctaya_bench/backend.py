"""The bench's handle on its stub backend: start it, switch its health, ask what it has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .calls import call_json
from .children import Child


@dataclass(frozen=True, slots=True)
class Backend:
    """A running stub."""

    child: Child
    port: int

    async def set_ready(self, ready: bool) -> float:
        """Switch /health; returns the monotonic time of the switch, taken inside the stub."""
        state = await call_json(self.port, f"/control/ready?value={int(ready)}")
        return float(state["now"])

    async def finish_streams(self) -> None:
        """Let every paced stream end with `[DONE]` at its next chunk."""
        await call_json(self.port, "/control/finish")

    async def reset(self) -> None:
        """Forget what was seen."""
        await call_json(self.port, "/control/reset")

    async def state(self) -> dict[str, Any]:
        """What was seen: connections, requests, last_request, visits by tag."""
        return await call_json(self.port, "/control/state")
