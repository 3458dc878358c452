"""`download`: a model from a hub or a bucket, complete and verified, or nothing that looks like it."""

import logging
import time
from pathlib import Path

from noctaya_api.model_source import ModelSource

from noctaya_prewarm.answers import Changed
from noctaya_prewarm.disk import check_room, explained
from noctaya_prewarm.errors import BadSettings, IntegrityFault
from noctaya_prewarm.lease import Lease, hold
from noctaya_prewarm.listing import Listing, RemoteFile, check, select
from noctaya_prewarm.marker import (
    AGENT,
    AlphaMarker,
    MarkedFile,
    Marker,
    default_marker,
    read_marker,
    remove_marker,
    timestamp,
    write_marker,
)
from noctaya_prewarm.part import Part
from noctaya_prewarm.progress import State
from noctaya_prewarm.prune import prune as prune_others
from noctaya_prewarm.retry import persist
from noctaya_prewarm.run import Run
from noctaya_prewarm.sources.source import Source, open_source, parse_source
from noctaya_prewarm.transfer import Transfer
from noctaya_prewarm.verify import list_problems
from noctaya_prewarm.workspace import Workspace

# Listed twice: a branch that moves once while it is fetched is bad luck, twice is no state to pin.
_ATTEMPTS = 2

logger = logging.getLogger(__name__)


def download(
    run: Run,
    *,
    source: str,
    target: Path,
    marker: Path | None = None,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    prune: bool = False,
) -> None:
    """Have the model of `source` in `target`, with its marker written last.

    A model that is there and has its marker is checked cheaply and left as it is; nothing is asked of the
    source then. What an interrupted run left is taken up.

    Args:
        run: settings, progress and deadline.
        source: URI with the scheme hf, modelscope or s3.
        target: the directory to make; it and `<target>.partial` are the agent's alone.
        marker: the file to write last; `.noctaya-ready` in the target without one.
        include: patterns of files to take; all without one.
        exclude: patterns of files to leave out.
        prune: first remove the other models of the cache.

    Raises:
        PrewarmError: it can't be done; its type says why.
    """
    marker = default_marker(target) if marker is None else marker
    parsed = parse_source(source, run.settings)
    try:
        with hold(run, target) as lease:
            if prune:
                prune_others(target)
            job = _Job(
                run,
                parsed,
                lease,
                source=source,
                target=target,
                marker=marker,
                include=include,
                exclude=exclude,
            )
            if not job.is_there():
                job.fetch()
    except OSError as error:
        raise explained(error, target) from error


class _Job:
    """One download while the lease is held."""

    def __init__(
        self,
        run: Run,
        parsed: ModelSource,
        lease: Lease,
        *,
        source: str,
        target: Path,
        marker: Path,
        include: tuple[str, ...],
        exclude: tuple[str, ...],
    ) -> None:
        self._run = run
        self._parsed = parsed
        self._lease = lease
        self._source = source
        self._marker = marker
        self._include = include
        self._exclude = exclude
        self._workspace = Workspace(run, target)
        self._target = target

    def is_there(self) -> bool:
        """Whether the marker is that of this source and its files are as it says; else it is taken away."""
        try:
            found = read_marker(self._marker)
        except IntegrityFault as error:
            logger.warning("the marker is replaced: %s", error)
            found = AlphaMarker()
        if found is None:
            return False
        if isinstance(found, Marker) and self._is_of_this(found):
            problems = list_problems(self._run, found, deep=False)
            if not problems:
                self._run.revision = found.revision
                self._run.progress.plan(total=found.total, done=found.total)
                self._workspace.tidy()
                logger.info("the model is there already", extra={"revision": found.revision})
                return True
            logger.warning("the model is repaired: %s", problems[0], extra={"problems": len(problems)})
        # From here on nobody may take the target for a model.
        if self._target.is_dir():
            self._workspace.open_again()
        remove_marker(self._marker)
        return False

    def fetch(self) -> None:
        """Fetch until a listing and what was fetched agree."""
        hub = open_source(self._parsed, self._run.settings)
        for attempt in range(1, _ATTEMPTS + 1):
            self._run.progress.begin_attempt(attempt)
            try:
                self._fetch_listed(hub, self._list(hub))
            except Changed as change:
                if attempt == _ATTEMPTS:
                    raise IntegrityFault(
                        f"the source keeps changing while it is fetched: {change}; pin a revision"
                    ) from change
                logger.warning("the source changed, it is listed again: %s", change)
            else:
                return

    def _list(self, hub: Source) -> Listing:
        self._run.progress.enter(State.LISTING)
        listing = check(select(persist(self._run, hub.list), include=self._include, exclude=self._exclude))
        self._run.revision = listing.revision
        logger.info(
            "listed",
            extra={"revision": listing.revision, "files": len(listing.files), "bytes": listing.total},
        )
        return listing

    def _fetch_listed(self, hub: Source, listing: Listing) -> None:
        run, workspace = self._run, self._workspace
        run.progress.enter(State.VERIFYING)
        workspace.prepare()
        there: list[MarkedFile] = []
        missing: list[RemoteFile] = []
        present = 0
        for file in listing.files:
            run.check()
            found = workspace.find(file)
            if found is not None:
                there.append(found)
                present += file.size
            else:
                missing.append(file)
                present += self._present(file)
        run.progress.plan(total=listing.total, done=present)
        check_room(workspace.partial.root, needed=listing.total - present, margin=run.settings.disk_margin)
        run.progress.enter(State.DOWNLOADING)
        fetched = Transfer(run, hub, workspace, hold=self._lease.check).fetch(missing)
        run.progress.enter(State.PROMOTING)
        self._lease.renew()
        workspace.sweep(listing)
        workspace.promote()
        self._lease.renew()
        write_marker(self._marker, self._make_marker(listing, [*there, *fetched]))
        workspace.tidy()

    def _present(self, file: RemoteFile) -> int:
        if not self._workspace.has_part(file):
            return 0
        part = Part(self._run, self._workspace.partial, self._workspace.part_name(file), file)
        try:
            return part.present
        finally:
            part.close()

    def _make_marker(self, listing: Listing, files: list[MarkedFile]) -> Marker:
        if len(files) != len(listing.files):
            raise BadSettings(f"{len(files)} of {len(listing.files)} files are there")
        return Marker(
            source=self._source,
            revision=listing.revision,
            target=str(self._target),
            include=self._include,
            exclude=self._exclude,
            files=tuple(sorted(files, key=lambda file: file.path)),
            total=listing.total,
            agent=AGENT,
            completed_at=timestamp(time.time()),
        )

    def _is_of_this(self, found: Marker) -> bool:
        return (found.source, found.target, set(found.include), set(found.exclude)) == (
            self._source,
            str(self._target),
            set(self._include),
            set(self._exclude),
        )
