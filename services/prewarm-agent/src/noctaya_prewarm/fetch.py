"""One connection's part in a transfer: fetch a piece, whatever the network does in between."""

import http.client
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from noctaya_prewarm.answers import Changed, Denied, Stretch, judge
from noctaya_prewarm.board import Piece
from noctaya_prewarm.dial import shown
from noctaya_prewarm.disk import explained
from noctaya_prewarm.part import PartWriter
from noctaya_prewarm.retry import Patience, Retryable
from noctaya_prewarm.run import Run
from noctaya_prewarm.sources.source import Source
from noctaya_prewarm.transport import Answer, Client, Request
from noctaya_prewarm.watch import Exchange, Watchdog

_BLOCK: Final = 256 * 1024


class Fetcher:
    """Fetches pieces over the connections of one thread.

    Args:
        run: the run.
        source: says how to ask for a file.
        client: this thread's connections.
        watchdog: cuts what is too slow.
        gate: shared by all fetchers: no request is sent before its moment.
        check: called before each write; raises when work must end.
        sleep: pauses, and raises when work must end.
    """

    def __init__(
        self,
        run: Run,
        source: Source,
        client: Client,
        *,
        watchdog: Watchdog,
        gate: "Gate",
        check: Callable[[], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._run = run
        self._source = source
        self._client = client
        self._watchdog = watchdog
        self._gate = gate
        self._check = check
        self._sleep = sleep

    def fetch(self, piece: Piece) -> None:
        """Write the whole piece.

        Raises:
            Changed, NoRanges: see `answers`.
            PrewarmError: it can't be had or written, or the run was aborted.
        """
        patience = Patience(self._run, sleep=self._sleep)
        denied: Request | None = None
        position = piece.start
        with piece.part.writer() as writer:
            while position < piece.end:
                self._check()
                self._sleep(self._gate.delay())
                before = piece.part.present
                try:
                    request = self._source.request(piece.task.file)
                    self._fetch_from(piece, request, position, writer)
                except Denied as problem:
                    # A rotated credential is read with the next request; the same one is not tried again.
                    if denied is not None and denied.credentials == request.credentials:
                        raise problem.problem from None
                    denied = request
                except Retryable as failure:
                    if piece.ranged:
                        position = min(piece.end, piece.part.end_of_run(position))
                    if piece.part.present > before:
                        patience.good()
                    if failure.after is not None:
                        self._gate.close_for(failure.after)
                    patience.bad(failure)
                else:
                    return

    def _fetch_from(self, piece: Piece, request: Request, position: int, writer: PartWriter) -> None:
        wanted = Stretch(position, piece.end, piece.task.file.size, ranged=piece.ranged)
        with self._watchdog.exchange() as exchange:
            try:
                answer = self._ask(piece, request, wanted, exchange)
                judge(answer, wanted)
                self._read(piece, answer, position, writer, exchange)
            except BaseException:
                self._client.drop()
                raise
            self._client.finish()

    def _ask(self, piece: Piece, request: Request, wanted: Stretch, exchange: Exchange) -> Answer:
        headers = dict(request.headers)
        if wanted.ranged:
            headers["Range"] = f"bytes={wanted.start}-{wanted.end - 1}"
        link = piece.task.link
        if link:
            # Kept only while it works: the next try asks the source for a fresh one.
            piece.task.link = ""
            answer = self._client.get(Request(url=link, headers=headers), exchange)
            if answer.status in {200, 206}:
                piece.task.link = link
            return replace(answer, redirected=True)
        answer = self._client.get(replace(request, headers=headers), exchange)
        if answer.redirected and answer.status in {200, 206}:
            piece.task.link = answer.url
        return answer

    def _read(
        self, piece: Piece, answer: Answer, position: int, writer: PartWriter, exchange: Exchange
    ) -> None:
        progress, name = self._run.progress, str(piece.task.file.path)
        # The start of a file that comes whole may be there already; it is read and not written again.
        known = position if piece.ranged else piece.part.end_of_run(0)
        while position < piece.end:
            limit = min(_BLOCK, (known if position < known else piece.end) - position)
            data = self._receive(answer, limit, exchange)
            if not data:
                why = "was too slow" if exchange.stalled else "ended"
                raise Retryable(f"{shown(answer.url)} {why} at byte {position} of {piece.end}")
            self._check()
            if position >= known:
                try:
                    new = writer.put(position, data)
                except OSError as error:
                    raise explained(error, piece.part.root) from error
                progress.add(new, name)
            position += len(data)
        if not piece.ranged and self._receive(answer, 1, exchange):
            raise Changed(f"{shown(answer.url)} has more than the {piece.end} bytes that were listed")

    def _receive(self, answer: Answer, limit: int, exchange: Exchange) -> bytes:
        # One read of the socket, however little it brings: what has arrived is written and counted at once.
        try:
            with exchange.waiting():
                data = answer.body.read1(limit)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._check()
            why = "was too slow" if exchange.stalled else f"broke off: {error}"
            raise Retryable(f"{shown(answer.url)} {why}") from error
        exchange.received += len(data)
        return data


class Gate:
    """Until when a source asked to be left alone, by one connection for all of them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._opens = clock()

    def close_for(self, seconds: float) -> None:
        """No request for that long."""
        self._opens = max(self._opens, self._clock() + seconds)

    def delay(self) -> float:
        """Seconds until requests may be sent."""
        return max(0.0, self._opens - self._clock())
