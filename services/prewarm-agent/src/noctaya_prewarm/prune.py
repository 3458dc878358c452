"""Remove the other models of a cache, when a service's cache is deliberately replaced.

Only directories that agents make are ever touched: their names are fixed (`<scheme>-<16 hex>`,
`sha256-<64 hex>`, also as `.partial` and `.old`), they lie below `models` or `oci` of the same cache, and
nobody works on them.
"""

import logging
import re
import shutil
from pathlib import Path

from noctaya_prewarm.disk import explained
from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.lease import is_held
from noctaya_prewarm.marker import default_marker, remove_marker

_PARENTS = ("models", "oci")
_MODEL = re.compile(
    r"(?P<model>(?:hf|modelscope|s3)-[0-9a-f]{16}|sha256-[0-9a-f]{64})(?:\.partial|\.old-[0-9a-f]+)?"
)

logger = logging.getLogger(__name__)


def prune(target: Path) -> None:
    """Remove every model beside `target`, and of the other kind, but `target` itself and what is worked on.

    Raises:
        BadSettings: the target lies in no cache of the known layout, or a directory can't be removed.
        PrewarmError: removing failed otherwise.
    """
    if target.parent.name not in _PARENTS or _MODEL.fullmatch(target.name) is None:
        raise BadSettings(f"--prune needs a target such as /cache/models/hf-0123456789abcdef, not {target}")
    for parent in _PARENTS:
        folder = target.parent.parent / parent
        if folder.is_dir() and not folder.is_symlink():
            for entry in sorted(folder.iterdir()):
                _prune_one(entry, target)


def is_model_name(name: str) -> bool:
    """Whether a directory's name is one that only agents give."""
    found = _MODEL.fullmatch(name)
    return found is not None and found["model"] == name


def _prune_one(entry: Path, target: Path) -> None:
    found = _MODEL.fullmatch(entry.name)
    if found is None or entry.is_symlink() or not entry.is_dir():
        return
    model = entry.with_name(found["model"])
    if model == target:
        return
    if is_held(model):
        logger.info("left alone, an agent works on it", extra={"directory": str(model)})
        return
    try:
        # Without its marker first, a half-removed model is never taken for a whole one.
        remove_marker(default_marker(entry))
        shutil.rmtree(entry)
    except OSError as error:
        raise explained(error, entry) from error
    logger.info("removed", extra={"directory": str(entry)})
