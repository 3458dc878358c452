"""What a cold service answers to safe requests, without waking the model (behaviour G3).

`GET /v1/models` and `GET /v1/models/{id}` list what this service serves together with its state, so
that a client's model picker works while nothing runs. Ids may contain slashes, percent-encoded or not.
Everything else safe gets 503 `cold_start`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from noctaya_gateway.errors import GatewayError, ModelNotFound
from noctaya_gateway.responses import Reply, json_reply

SAFE_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS"})
LIST_PATH = b"/v1/models"


class State(enum.StrEnum):
    """Where the service stands, as listed under `noctaya.state`."""

    COLD = "cold"
    ACTIVATING = "activating"
    PREWARMING = "prewarming"
    ASLEEP = "asleep"
    READY = "ready"


class Models:
    """The model ids of one service; `created` is Unix seconds, the start of this gateway."""

    def __init__(self, ids: Sequence[str], *, created: int) -> None:
        self.ids = tuple(dict.fromkeys(ids))
        self._created = created

    def answer(self, target: bytes, *, state: State) -> Reply | None:
        """The reply to a GET of `target` (path and query), None when it is no model path; ModelNotFound
        for others' ids.
        """
        path = target.partition(b"?")[0]
        if path.rstrip(b"/") == LIST_PATH:
            listed = [self._model(model_id, state) for model_id in self.ids]
            return json_reply(200, {"object": "list", "data": listed})
        if not path.startswith(LIST_PATH + b"/"):
            return None
        wanted = unquote_to_bytes(path[len(LIST_PATH) + 1 :]).decode("utf-8", "replace")
        if wanted in self.ids:
            return json_reply(200, self._model(wanted, state))
        raise ModelNotFound(f"The model {wanted[:200]!r} is not served here.")

    def _model(self, model_id: str, state: State) -> dict[str, Any]:
        return {
            "id": model_id,
            "object": "model",
            "created": self._created,
            "owned_by": "noctaya",
            "noctaya": {"state": state.value},
        }


def answer_cold(
    models: Models, method: bytes, target: bytes, *, state: State, refusal: GatewayError
) -> Reply:
    """The local answer to a safe request on a cold service; raises `refusal` for all but the model paths.

    A HEAD reply keeps the headers of the GET, its length included; whoever sends it leaves the body out.
    """
    if method != b"OPTIONS" and (reply := models.answer(target, state=state)) is not None:
        return reply
    raise refusal
