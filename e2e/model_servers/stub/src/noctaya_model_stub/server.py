"""Routes of the stub. On SIGTERM it ends at once and cuts what is in flight, as engines do: whoever wants
streams to end properly must drain before that.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from noctaya_model_stub.completions import Completion
from noctaya_model_stub.settings import SettingError, whole_number
from noctaya_model_stub.state import State
from noctaya_model_stub.wire import MAX_HEAD, BadRequest, Request, Response, read_request

Route = Callable[[Request, Response], Awaitable[None]]
CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"


class Stub:
    """One listening stub."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()
        self._answered = 0
        self._routes: dict[str, dict[str, Route]] = {
            "/health": {"GET": self._health},
            "/metrics": {"GET": self._metrics},
            "/v1/models": {"GET": self._models},
            CHAT: {"POST": self._complete},
            TEXT: {"POST": self._complete},
            "/control": {"POST": self._control},
        }

    async def start(self) -> int:
        """Listen on every address; returns the port."""
        port = self.state.settings.port
        self._server = await asyncio.start_server(self._accept, "0.0.0.0", port, limit=MAX_HEAD, backlog=1024)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
        open_ones = list(self._conversations)
        for conversation in open_ones:
            conversation.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports close their sockets in the next turn

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.create_task(self._serve(reader, writer))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            self.state.departures += 1
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection goes on."""
        pod = self.state.settings.pod
        try:
            request = await read_request(reader, writer)
        except BadRequest as error:
            await Response(writer, pod=pod, keep_alive=False).send_json(400, _error(str(error)))
            return False
        if request is None:
            return False
        self._answered += 1
        response = Response(writer, pod=pod, keep_alive=request.keep_alive)
        methods = self._routes.get(request.path)
        if methods is None:
            await response.send_json(404, _error(f"{request.path} is not served"))
        elif (route := methods.get(request.method)) is None:
            await response.send_json(
                405, _error(f"{request.method} is not allowed"), allow=", ".join(methods)
            )
        else:
            await route(request, response)
        return request.keep_alive and not writer.is_closing()

    async def _health(self, _: Request, response: Response) -> None:
        healthy = self.state.healthy(time.monotonic())
        await response.send_json(200 if healthy else 503, {"status": "ok" if healthy else "loading"})

    async def _metrics(self, _: Request, response: Response) -> None:
        await response.send(200, self.state.metrics().encode(), content_type="text/plain; version=0.0.4")

    async def _models(self, _: Request, response: Response) -> None:
        model = {"id": self.state.settings.model, "object": "model", "owned_by": "stub"}
        await response.send_json(200, {"object": "list", "data": [model]})

    async def _control(self, request: Request, response: Response) -> None:
        try:
            self.state.control(_json_object(request.body or b"{}"))
        except SettingError as error:
            await response.send_json(400, _error(str(error)))
            return
        await response.send_json(200, self.state.view(time.monotonic()))

    async def _complete(self, request: Request, response: Response) -> None:
        if self.state.behaviour.fail_status:
            await response.send_json(self.state.behaviour.fail_status, _error("told to fail"))
            return
        try:
            completion = self._asked(request)
        except SettingError as error:
            await response.send_json(400, _error(str(error)))
            return
        self.state.begin(traceparent=request.headers.get("traceparent", ""))
        complete = False
        try:
            await (self._stream if completion.stream else self._whole)(completion, response)
            complete = True
        except ConnectionAbortedError:
            response.cut()
        finally:
            self.state.end(complete=complete)

    async def _whole(self, completion: Completion, response: Response) -> None:
        for _ in range(completion.tokens):
            await asyncio.sleep(self.state.behaviour.token_delay)
        await response.send_json(200, completion.whole())

    async def _stream(self, completion: Completion, response: Response) -> None:
        await response.begin_events()
        for sent, chunk in enumerate(completion.chunks()):
            if 0 < self.state.behaviour.cut_after <= sent:
                raise ConnectionAbortedError(f"told to cut after {sent} tokens")
            await asyncio.sleep(self.state.behaviour.token_delay)
            await response.event(chunk)
        for data in completion.closing():
            await response.event(data)
        await response.end_events()

    def _asked(self, request: Request) -> Completion:
        """Raises SettingError."""
        body = _json_object(request.body)
        default = body.get("max_tokens") or body.get("max_completion_tokens")
        count: Any = request.query.get("tokens", [default or self.state.behaviour.token_count])[-1]
        options = body.get("stream_options")
        return Completion(
            chat=request.path == CHAT,
            model=str(body.get("model") or self.state.settings.model),
            tokens=whole_number("tokens", count, lowest=1),
            number=self._answered,
            stream=body.get("stream") is True,
            usage=isinstance(options, dict) and options.get("include_usage") is True,
        )


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise SettingError(f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise SettingError("the body is no JSON object")
    return found


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "stub_error", "param": None, "code": None}}
