"""Who may report: the bearer tokens of a file, and for a while those it held before.

The file reaches gateways and scaler at different moments after a change, more than a minute apart for mounted
Secrets. A file with both tokens, one a line, covers that; and after any change the ones before stay good for
a while, so that a plain replacement does not silence the gateways that have not got the new file yet.
"""

import hashlib
import hmac
import logging
from collections.abc import Callable
from typing import Final

from noctaya_api.process.token_file import TokenFile, TokenUnavailable

__all__ = ["ReportAuthenticator", "TokenUnavailable"]

ROTATION_OVERLAP: Final = 90.0
"""Seconds the tokens before a change stay good: the kubelet's sync period of 60 s and what its cache adds."""
_SCHEME: Final = b"Bearer "

logger = logging.getLogger(__name__)


class ReportAuthenticator:
    """Checks an Authorization header value.

    Args:
        token_file: the tokens in force.
        clock: monotonic seconds.
        overlap: seconds the tokens before a change stay good, from the moment the change was seen.
    """

    def __init__(
        self, token_file: TokenFile, *, clock: Callable[[], float], overlap: float = ROTATION_OVERLAP
    ) -> None:
        self._file = token_file
        self._clock = clock
        self._overlap = overlap
        self._current: tuple[bytes, ...] = ()
        self._previous: tuple[bytes, ...] = ()
        self._previous_until = 0.0
        self._problem = ""

    def check(self) -> None:
        """Whether the file is usable now.

        Raises:
            TokenUnavailable: it is not; the message says why.
        """
        self._refresh()

    def accepts(self, authorization: bytes | None) -> bool:
        """Whether the header is exactly `Bearer <token>`, scheme in this case, one space, no trimming.

        Raises:
            TokenUnavailable: the token file can't be used.
        """
        self._refresh()
        if authorization is None or not authorization.startswith(_SCHEME):
            return False
        presented = authorization[len(_SCHEME) :]
        return self._file.matches(presented) or self._was_good(presented)

    def _refresh(self) -> None:
        try:
            tokens = self._file.tokens()
        except TokenUnavailable as error:
            if str(error) != self._problem:
                self._problem = str(error)
                logger.warning("reports are refused: %s", error)
            raise
        if self._problem:
            self._problem = ""
            logger.info("the token file is usable again")
        if tokens is self._current:
            return
        if self._current and tokens != self._current:
            self._previous = self._current
            self._previous_until = self._clock() + self._overlap
        self._current = tokens

    def _was_good(self, presented: bytes) -> bool:
        if not self._previous or self._clock() >= self._previous_until:
            self._previous = ()
            return False
        digest = hashlib.sha256(presented).digest()
        found = False
        for token in self._previous:
            found |= hmac.compare_digest(hashlib.sha256(token).digest(), digest)
        return found
