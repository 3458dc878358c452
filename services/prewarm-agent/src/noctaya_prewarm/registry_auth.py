"""From a pull secret to the configuration of the container that pulls: the one credential it needs.

Done before the pull, so that a secret which can't work is told in words, and so that the pulling program sees
neither other registries' credentials nor two entries between which it would choose by chance.
"""

import contextlib
import logging
import os
from pathlib import Path

from noctaya_api.model_source import ModelSource

from noctaya_prewarm.disk import explained
from noctaya_prewarm.dockerconfig import MAX_BYTES, find_credential, minimal_config
from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.oci_source import parse_oci_source, registry_of

logger = logging.getLogger(__name__)
# For the owner and the pod's group: the pull container may run with another uid.
_MODE = 0o640


def login(*, config: Path, source: str, output: Path) -> None:
    """Read the pull secret and write the configuration for the pull, replacing an older one.

    Raises:
        BadSettings: the secret can't be read or used, or the source is no oci:// URI.
        PrewarmError: the output can't be written.
    """
    model: ModelSource = parse_oci_source(source)
    registry, repository = registry_of(model)
    try:
        with config.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadSettings(
            f"the pull secret can't be read at {config} ({error.strerror}); it must have the key "
            ".dockerconfigjson"
        ) from error
    credential = find_credential(content, registry=registry, repository=repository)
    _write(output, minimal_config(credential, registry=registry))
    logger.info("registry credential found", extra={"registry": registry})


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except OSError as error:
        raise explained(error, path) from error
