"""Wait until a model is there: what a serving pod does before its server starts.

The marker is looked at once a second: claims may live on network file systems, where no notification arrives.
"""

import logging
from pathlib import Path

from noctaya_prewarm.errors import DeadlineExceeded, IntegrityFault
from noctaya_prewarm.marker import AlphaMarker, read_marker
from noctaya_prewarm.oci_source import same_source
from noctaya_prewarm.progress import State
from noctaya_prewarm.run import Run

_POLL = 1.0
_REMIND = 30.0

logger = logging.getLogger(__name__)


def wait(run: Run, *, marker: Path, source: str | None, timeout: float | None) -> None:
    """Return once `marker` exists and, when a source is given, is that source's.

    Args:
        run: the run; its deadline does not apply here, a wait lasts as long as it is told to.
        marker: the file to look for.
        source: URI that the marker must name; None accepts any. An empty marker of v0.4 names no source and
            is accepted.
        timeout: longest wait in seconds; None waits for ever.

    Raises:
        DeadlineExceeded: the timeout has passed; the message says what was missing.
        PrewarmError: the run was aborted.
    """
    run.progress.enter(State.WAITING)
    started = run.clock()
    told, told_at = "", started
    while True:
        missing = _what_is_missing(marker, source)
        now = run.clock()
        if not missing:
            logger.info(
                "the model is there", extra={"marker": str(marker), "waited": round(now - started, 1)}
            )
            return
        if missing != told or now - told_at >= _REMIND:
            logger.info("waiting: %s", missing, extra={"waited": round(now - started, 1)})
            told, told_at = missing, now
        if timeout is not None and now - started >= timeout:
            raise DeadlineExceeded(f"gave up after {timeout:g} s: {missing}")
        left = _POLL if timeout is None else min(_POLL, timeout - (now - started))
        run.pause(left)


def _what_is_missing(marker: Path, source: str | None) -> str:
    try:
        found = read_marker(marker)
    except (IntegrityFault, OSError) as error:
        return str(error)
    if found is None:
        return f"there is no marker at {marker} yet"
    if source is None or isinstance(found, AlphaMarker) or same_source(found.source, source):
        return ""
    return f"the marker at {marker} is that of {found.source}, not of {source}"
