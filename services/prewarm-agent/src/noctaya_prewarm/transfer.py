"""The transfer: several threads fetch, hash and verify the files of a listing into a workspace."""

import threading
from collections.abc import Callable
from importlib.metadata import version

from noctaya_prewarm.answers import NoRanges
from noctaya_prewarm.board import Board, Halted, Piece, Task
from noctaya_prewarm.disk import explained
from noctaya_prewarm.errors import IntegrityFault
from noctaya_prewarm.fetch import Fetcher, Gate
from noctaya_prewarm.listing import RemoteFile
from noctaya_prewarm.marker import MarkedFile
from noctaya_prewarm.part import Part
from noctaya_prewarm.run import Run
from noctaya_prewarm.sources.source import Source
from noctaya_prewarm.transport import Client
from noctaya_prewarm.trust import tls_context
from noctaya_prewarm.watch import Watchdog
from noctaya_prewarm.workspace import Workspace

_AGENT = f"noctaya-prewarm/{version('noctaya-prewarm')}"
# A second fetch tells damage on the way from a source that lies.
_MAX_MISMATCHES = 2


class Transfer:
    """One transfer into `workspace`.

    Args:
        run: the run.
        source: where the files come from.
        workspace: where they go.
        hold: called before each write; raises when the target is no longer ours.
    """

    def __init__(self, run: Run, source: Source, workspace: Workspace, *, hold: Callable[[], None]) -> None:
        self._run = run
        self._source = source
        self._workspace = workspace
        self._hold = hold
        self._accepted: list[MarkedFile] = []
        self._lock = threading.Lock()

    def fetch(self, files: list[RemoteFile]) -> list[MarkedFile]:
        """Fetch, verify and put in place every file of `files`.

        Raises:
            Changed: the source no longer has what was listed.
            PrewarmError: it can't be done, or the run was aborted.
        """
        settings = self._run.settings
        board = Board(files, piece_size=settings.range_size, open_part=self._open_part)
        watchdog = Watchdog(
            window=settings.stall_timeout,
            min_rate=settings.min_rate,
            on_stall=self._run.progress.stalled,
            clock=self._run.clock,
        )
        context, gate = tls_context(settings.ca_file), Gate(self._run.clock)

        def work() -> None:
            client = Client(context=context, timeout=settings.stall_timeout, agent=_AGENT)
            fetcher = Fetcher(
                self._run,
                self._source,
                client,
                watchdog=watchdog,
                gate=gate,
                check=lambda: self._check(board),
                sleep=lambda seconds: self._sleep(board, seconds),
            )
            try:
                self._work(board, fetcher)
            except Halted:
                pass  # somebody else failed, and has said so
            except Exception as error:  # noqa: BLE001  it is raised where the workers are joined
                board.fail(error)
                watchdog.cut_all()
            finally:
                client.close()

        def halt() -> None:
            board.fail(Halted())
            watchdog.cut_all()

        # Daemons: a write that is stuck in a dead file system must not keep the process from leaving.
        count = settings.connections
        workers = [threading.Thread(target=work, name=f"fetch-{n}", daemon=True) for n in range(count)]
        watchdog.start()
        self._run.add_waker(halt)
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            self._run.remove_waker(halt)
            watchdog.stop()
            board.close_parts()
        self._run.check()
        if board.error is not None:
            raise board.error
        return self._accepted

    def _work(self, board: Board, fetcher: Fetcher) -> None:
        last: Task | None = None
        while (piece := self._take(board, last)) is not None:
            last = piece.task
            try:
                fetcher.fetch(piece)
            except NoRanges:
                board.fetch_whole(piece.task)
            piece.part.catch_up()
            if board.done(piece):
                self._finish(board, piece)

    def _take(self, board: Board, last: Task | None) -> Piece | None:
        try:
            return board.take(last)
        except OSError as error:
            raise explained(error, self._workspace.partial.root) from error

    def _finish(self, board: Board, piece: Piece) -> None:
        """Verify a complete part and move it to its place, or have it fetched once more."""
        task, part, file = piece.task, piece.part, piece.task.file
        try:
            found = part.digest()
            if file.digest is not None and found.value != file.digest.value:
                if task.mismatches + 1 >= _MAX_MISMATCHES:
                    part.discard()
                    raise IntegrityFault(
                        f"{file.path} was fetched {_MAX_MISMATCHES} times and is {found} instead of "
                        f"{file.digest}; the source serves something else than it lists"
                    )
                self._run.progress.take_back(part.discard())
                self._run.progress.retried()
                board.restart(task)
                return
            status = part.sync()
            self._check(board)
            marked = self._workspace.accept(file, part.path, found, status.st_mtime_ns)
            part.drop_journal()
            self._run.progress.finished(str(file.path))
        except OSError as error:
            raise explained(error, part.root) from error
        with self._lock:
            self._accepted.append(marked)
        part.close()
        task.part = None
        board.close(task)

    def _open_part(self, file: RemoteFile) -> Part:
        return Part(self._run, self._workspace.partial, self._workspace.part_name(file), file)

    def _check(self, board: Board) -> None:
        self._run.check()
        board.check()
        self._hold()

    def _sleep(self, board: Board, seconds: float) -> None:
        if seconds > 0:
            board.halted.wait(min(seconds, self._run.remaining))
        self._run.check()
        board.check()
