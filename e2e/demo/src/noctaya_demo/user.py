"""The user of the demo: the openai SDK, with a look at the bytes below it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx2
import openai

HEARTBEAT = b": heartbeat\n"
TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Piece:
    """What arrived, and when (time.monotonic()): a heartbeat, or text of the answer."""

    at: float
    text: str
    heartbeat: bool = False


@dataclass(frozen=True, slots=True)
class Burst:
    """Outcome of many requests at once."""

    answered: int
    refused: int
    retry_after: str
    others: tuple[str, ...]


class Wire(httpx2.SyncByteStream):
    """Passes a response's bytes on and notes when a heartbeat was among them."""

    def __init__(self, stream: httpx2.SyncByteStream, beats: list[float]) -> None:
        self._stream = stream
        self._beats = beats

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._beats.extend([time.monotonic()] * chunk.count(HEARTBEAT))
            yield chunk

    def close(self) -> None:
        """Close the response."""
        self._stream.close()


class Tap(httpx2.HTTPTransport):
    """The SDK's transport, with a `Wire` around every response."""

    def __init__(self) -> None:
        super().__init__()
        self.beats: list[float] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        response = super().handle_request(request)
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = Wire(response.stream, self.beats)
        return response


class User:
    """Talks to one OpenAI-compatible endpoint."""

    def __init__(self, base_url: str, *, model: str) -> None:
        self._tap = Tap()
        self._model = model
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key="not-needed",
            max_retries=0,
            timeout=TIMEOUT,
            http_client=httpx2.Client(transport=self._tap, timeout=TIMEOUT),
        )

    def models(self) -> list[str]:
        """Ids of GET /v1/models."""
        return [model.id for model in self._client.models.list()]

    def ask(self, question: str, *, tokens: int = 48) -> Iterator[Piece]:
        """Stream an answer; heartbeats that came before a piece of text are given first."""
        self._tap.beats.clear()
        stream = self._client.chat.completions.create(
            model=self._model,
            messages=[{"role": "user", "content": question}],
            max_tokens=tokens,
            temperature=0,
            stream=True,
        )
        shown = 0
        for chunk in stream:
            while shown < len(self._tap.beats):
                yield Piece(self._tap.beats[shown], "", heartbeat=True)
                shown += 1
            text = chunk.choices[0].delta.content if chunk.choices else None
            if text:
                yield Piece(time.monotonic(), text)

    def burst(self, count: int, *, tokens: int = 16) -> Burst:
        """Send `count` requests at the same time."""
        with ThreadPoolExecutor(count) as pool:
            outcomes = list(pool.map(lambda number: self._ask_once(number, tokens), range(count)))
        refusals = [outcome for outcome in outcomes if outcome.startswith("429")]
        return Burst(
            answered=outcomes.count("200"),
            refused=len(refusals),
            retry_after=refusals[0].partition(" ")[2] if refusals else "",
            others=tuple(outcome for outcome in outcomes if outcome != "200" and outcome not in refusals),
        )

    def _ask_once(self, number: int, tokens: int) -> str:
        try:
            self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": "user", "content": f"Count from {number} to {number + 20}."}],
                max_tokens=tokens,
            )
        except openai.RateLimitError as error:
            return f"429 {error.response.headers.get('retry-after', 'none')}"
        except openai.OpenAIError as error:
            return f"{type(error).__name__}: {error}"
        return "200"
