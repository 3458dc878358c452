"""What the user of the demo does and sees; each method is a step and fails when it doesn't hold."""

import http.client
import json
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.text import Text

from noctaya_demo.latency import ROUNDS, measure
from noctaya_demo.picture import draw_timeline
from noctaya_demo.place import Place
from noctaya_demo.recording import describe
from noctaya_demo.step import Step, StepFailed
from noctaya_demo.user import User

SERVICE = "smollm2"
COLD_QUESTION = "Write one sentence about the moon."
WARM_QUESTION = "Write one sentence about the sea."
SLOTS = 8
"""endpoint.maxQueue of the quickstart."""
BURST = 3 * SLOTS
QUIET = 1.0
"""Seconds in which no model may start after only looking."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One streamed answer; moments are time.monotonic()."""

    beats: tuple[float, ...]
    answer: str
    first: float | None
    ended: float


class Act:
    """The steps against the endpoint `url` (with /v1) of a model that lives in `place`."""

    def __init__(self, console: Console, place: Place, url: str) -> None:
        self._console = console
        self._place = place
        self._url = url
        self._user = User(url, model=SERVICE)
        self._marks: list[tuple[str, float]] = []
        self._cold: Heard | None = None

    def asleep(self) -> None:
        """Looking at the model list wakes nothing."""
        with Step(self._console, "asleep") as step:
            models = self._user.models()
            if models != [SERVICE]:
                raise StepFailed(f"GET /v1/models listed {models}, not {SERVICE}")
            time.sleep(QUIET)
            if running := self._place.running():
                raise StepFailed(f"{running} runs although nobody asked for an answer")
            step.say(f"GET /v1/models lists {SERVICE}; no {self._place.noun} runs")

    def cold_start(self) -> None:
        """A streaming request finds no model, is held with heartbeats, and gets its answer."""
        with Step(self._console, "cold") as step:
            requested = time.monotonic()
            heard = self._stream(step, COLD_QUESTION)
            if not heard.beats:
                raise StepFailed("no heartbeat came while the model was woken")
            if not heard.answer.strip() or heard.first is None:
                raise StepFailed("the answer is empty")
            self._marks = [("requested", requested), *self._place.marks(after=requested)]
            self._marks.append(("first token", heard.first))
            self._cold = heard

    def warm_answer(self) -> None:
        """The next request is answered at once."""
        with Step(self._console, "warm") as step:
            heard = self._stream(step, WARM_QUESTION)
            if heard.beats or not heard.answer.strip():
                raise StepFailed(
                    f"{len(heard.beats)} heartbeats, then {heard.answer!r}, from a model that is awake"
                )

    def compare_latency(self, backend_port: int) -> None:
        """What the gateway adds to a small warm request, against the same one sent to the model itself."""
        with Step(self._console, "latency") as step:
            try:
                seen = measure(backend_port=backend_port, gateway_port=urlsplit(self._url).port or 80)
            except (OSError, http.client.HTTPException) as error:
                raise StepFailed(f"the measurement broke off: {error}") from error
            # On a busy machine the difference of two medians can drown in noise, and even be negative.
            added = f"{seen.added:.2f} ms" if seen.added >= 0.01 else "less than this machine can tell"
            step.say(f"the gateway adds {added} (median of {ROUNDS}; {seen.direct:.2f} ms without it)")

    def burst(self) -> None:
        """More requests at once than the queue takes: some are answered, the others told to come back."""
        with Step(self._console, "burst") as step:
            seen = self._user.burst(BURST)
            if seen.others:
                raise StepFailed(
                    f"{len(seen.others)} requests ended otherwise, the first with {seen.others[0]}"
                )
            if seen.answered < SLOTS or not seen.refused:
                raise StepFailed(
                    f"{seen.answered} were answered and {seen.refused} refused, of {BURST} at once"
                )
            step.say(
                f"{BURST} at once, maxQueue {SLOTS}: {seen.answered} answered, {seen.refused} told 429 "
                f"(Retry-After {seen.retry_after})"
            )

    def back_to_zero(self) -> None:
        """Without requests the model goes."""
        with Step(self._console, "zero again") as step:
            self._place.wait_for_zero(after=time.monotonic(), within=self._place.zero_within)
            if running := self._place.running():
                raise StepFailed(f"{running} still runs")
            step.say(f"idle, the {self._place.noun} is gone and its memory free")

    def draw(self) -> None:
        """The picture of the cold start."""
        self._console.print("\n  The cold start, step by step:\n")
        self._console.print(draw_timeline(self._marks))
        self._console.print()

    def save_picture(self, path: Path) -> None:
        """Write the cold start as data for docs/pictures/draw.py."""
        assert self._cold is not None
        data = describe(dict(self._marks), beats=self._cold.beats, ended=self._cold.ended)
        path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")

    def stay(self) -> None:
        """Stay up until Ctrl-C, with a line to try."""
        body = f'{{"model":"{SERVICE}","stream":true,"messages":[{{"role":"user","content":"Hello!"}}]}}'
        self._console.print("  It stays up. Wake the model yourself, Ctrl-C ends everything:\n")
        self._console.print(
            Text(
                f"    curl -N {self._url}/chat/completions -H 'content-type: application/json' -d '{body}'\n"
            ),
            soft_wrap=True,
        )
        self._place.stay()

    def _stream(self, step: Step, question: str) -> Heard:
        """Ask, and show what arrives."""
        step.show(f"“{question}” ", style="italic")
        beats: list[float] = []
        answer, first = "", None
        for piece in self._user.ask(question):
            if piece.heartbeat:
                beats.append(piece.at)
                step.show("♥", style="red")
                continue
            if first is None:
                first = piece.at
                step.show(" → ", style="dim")
            answer += piece.text
            step.show(piece.text.replace("\n", " "), style="cyan")
        return Heard(beats=tuple(beats), answer=answer, first=first, ended=time.monotonic())
