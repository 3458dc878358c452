"""The bodies of chat and text completions, whole and in chunks, as OpenAI's API has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CREATED = 1_700_000_000
"""A fixed time: nothing here depends on the clock."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion that was asked for."""

    chat: bool
    model: str
    tokens: int
    number: int
    stream: bool
    usage: bool

    def whole(self) -> dict[str, Any]:
        """The answer to a request that doesn't stream."""
        text = "".join(self._words())
        if self.chat:
            content: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        else:
            content = {"text": text}
        choice = {"index": 0, **content, "finish_reason": "stop"}
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._frame(kind), "choices": [choice], "usage": self._usage()}

    def chunks(self) -> Iterator[str]:
        """The `data` of each event but the closing ones: one a token."""
        for index, word in enumerate(self._words()):
            delta: dict[str, Any] = {"content": word}
            if index == 0:
                delta = {"role": "assistant", **delta}
            yield self._chunk({"delta": delta} if self.chat else {"text": word}, None)

    def closing(self) -> Iterator[str]:
        """The `data` of the events after the last token, `[DONE]` the last of them."""
        yield self._chunk({"delta": {}} if self.chat else {"text": ""}, "stop")
        if self.usage:
            yield json.dumps({**self._frame(self._chunk_kind), "choices": [], "usage": self._usage()})
        yield "[DONE]"

    @property
    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _words(self) -> Iterator[str]:
        return (f"token{index} " for index in range(self.tokens))

    def _chunk(self, content: dict[str, Any], finish: str | None) -> str:
        choice = {"index": 0, **content, "finish_reason": finish}
        return json.dumps({**self._frame(self._chunk_kind), "choices": [choice]}, separators=(",", ":"))

    def _frame(self, kind: str) -> dict[str, Any]:
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {"id": f"{prefix}-{self.number}", "object": kind, "created": CREATED, "model": self.model}

    def _usage(self) -> dict[str, int]:
        return {"prompt_tokens": 1, "completion_tokens": self.tokens, "total_tokens": self.tokens + 1}
