"""The termination message: what the kubelet copies into the pod's status, and the operator shows.

The kubelet cuts a message at 4,096 bytes, in the middle of JSON if need be; therefore ours is shortened here,
at its one field of free text.
"""

import json
import logging
from pathlib import Path
from typing import Final

from noctaya_prewarm.errors import PrewarmError
from noctaya_prewarm.run import Run

MAX_BYTES: Final = 4096
DEFAULT_PATH: Final = Path("/dev/termination-log")
_ELLIPSIS: Final = "…"

logger = logging.getLogger(__name__)


def describe(run: Run, error: PrewarmError | None) -> dict[str, object]:
    """The final `/progress` object with message, code and reason, and what is known of the content."""
    content: dict[str, object] = run.progress.snapshot().as_json()
    content["message"] = "the model is complete and verified" if error is None else str(error)
    content["code"] = 0 if error is None else error.code
    content["reason"] = "Done" if error is None else error.reason
    if run.revision:
        content["revision"] = run.revision
    if run.digest:
        content["digest"] = run.digest
    return content


def encode(content: dict[str, object], *, limit: int = MAX_BYTES) -> bytes:
    """One line of JSON of at most `limit` bytes; only the message is shortened for it."""
    text = _dump(content)
    message = str(content["message"])
    if len(text) <= limit:
        return text
    fixed = len(_dump({**content, "message": _ELLIPSIS}))
    keep = len(message)
    while keep and fixed + len(_dump({"m": message[:keep]})) - len(_dump({"m": ""})) > limit:
        keep = keep * 9 // 10
    return _dump({**content, "message": message[:keep] + _ELLIPSIS})


def write_termination(path: Path, content: dict[str, object]) -> None:
    """Write the message where the kubelet looks. A default path that isn't there means: no kubelet."""
    if path == DEFAULT_PATH and not path.exists():
        return
    try:
        path.write_bytes(encode(content))
    except OSError as error:
        logger.warning(
            "the termination message can't be written", extra={"path": str(path), "why": str(error)}
        )


def _dump(content: dict[str, object]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
