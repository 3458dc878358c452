"""Values of a mounted Secret, read again each time they are needed: a rotated token counts at once."""

import os
from pathlib import Path

from noctaya_prewarm.errors import BadSettings

AUTHORITIES = "ca.crt"
"""Key of a Secret for certificate authorities, as in Secrets of type kubernetes.io/tls."""


class SecretDir:
    """One mounted Secret. None stands for no Secret.

    A key is a file. Blank files count as absent: a Secret may be prepared before its content is.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __bool__(self) -> bool:
        return self._folder is not None

    def get(self, *keys: str) -> str:
        """The trimmed value of the first key that has one, or "".

        Raises:
            BadSettings: a file can't be read.
        """
        if self._folder is None:
            return ""
        for key in keys:
            value = read_value(self._folder / key)
            if value:
                return value
        return ""

    def need(self, *keys: str) -> str:
        """As `get`. Raises BadSettings, naming the keys, when there is none.

        A Secret that holds authorities to trust (`ca.crt`) may have nothing else: a mirror without tokens.
        """
        value = self.get(*keys)
        if not value and self._folder is not None and not (self._folder / AUTHORITIES).exists():
            raise BadSettings(f"the Secret at {self._folder} has no key {' or '.join(keys)} with a value")
        return value


def read_value(path: Path) -> str:
    """The trimmed content of a credential file, "" when it doesn't exist. Raises BadSettings."""
    try:
        value = path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(
            f"{path} can't be read: {getattr(error, 'strerror', None) or 'not text'}"
        ) from error
    if any(not letter.isprintable() for letter in value):
        raise BadSettings(f"{path} holds more than one line or unprintable characters")
    return value


def token_from_environment(*, variable: str, path_variable: str = "") -> str:
    """A token from the variables that a hub's own tools read: a file's path first, then the token itself."""
    path = os.environ.get(path_variable, "") if path_variable else ""
    return (read_value(Path(path)) if path else "") or os.environ.get(variable, "").strip()
