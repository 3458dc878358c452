"""openai-python as a judge, with the answers of the other judges' form."""

from __future__ import annotations

from typing import Any

import openai
from openai.types.chat import ChatCompletionUserMessageParam

MESSAGES: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "hi"}]


class PythonJudge:
    """openai-python."""

    async def ask(self, port: int, scenario: str, *, key: str = "none") -> dict[str, Any]:
        base_url = f"http://127.0.0.1:{port}/v1"
        async with openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=60) as client:
            try:
                return await SCENARIOS[scenario](client)
            except ValueError as error:
                # The SDK parses every event as JSON and lets the parser's error through.
                return {"error": {"class": type(error).__name__, "code": None, "message": str(error)}}
            except openai.APIError as error:
                return {
                    "error": {
                        "class": type(error).__name__,
                        "status": getattr(error, "status_code", None),
                        "code": error.code,
                        "message": error.message,
                    }
                }


async def stream(client: openai.AsyncOpenAI) -> dict[str, Any]:
    text, finish, chunks = "", None, 0
    async for chunk in await client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
        chunks += 1
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    return {"text": text, "finish": finish, "chunks": chunks}


async def plain(client: openai.AsyncOpenAI) -> dict[str, Any]:
    reply = await client.chat.completions.create(model="m", messages=MESSAGES)
    return {"text": reply.choices[0].message.content, "finish": reply.choices[0].finish_reason}


async def models(client: openai.AsyncOpenAI) -> dict[str, Any]:
    return {"models": [model.id async for model in client.models.list()]}


SCENARIOS = {"stream": stream, "plain": plain, "models": models}
