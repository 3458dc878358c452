"""Client authentication by API key (contracts 3.4, behaviour G10).

The key comes from a mounted Secret file that may hold several keys, one a line, each with a name and limits
(`keys`). A request presents one as `Authorization: Bearer <key>` (any case of the scheme), `x-api-key` or
`api-key`; only the first header of each name counts. Comparison is in constant time over digests. With
authentication on, the credential headers never reach the backend; with it off they pass through.

A file that was changed for one that can't be understood changes nothing: the keys read last stay good, the
fault is logged and shown as a metric. One that is missing or blank lets nobody in.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Sequence

from noctaya_api.process.token_file import TokenFile, TokenUnavailable

from noctaya_gateway.errors import AuthenticationUnavailable, Unauthorized
from noctaya_gateway.keys import UNLIMITED, ClientKey, KeyLimits, MalformedKeys, parse_keys

log = logging.getLogger(__name__)

CREDENTIAL_HEADERS = frozenset({b"authorization", b"x-api-key", b"api-key"})
_LENGTHS = frozenset(len(name) for name in CREDENTIAL_HEADERS)


class Authenticator:
    """Lets requests in by key.

    Args:
        file: the key file; None switches authentication off.
        default: limits of keys that have none of their own.
        on_names: called with the names of all keys whenever the file was read.
    """

    def __init__(
        self,
        file: TokenFile | None,
        *,
        default: KeyLimits = UNLIMITED,
        on_names: Callable[[Sequence[str]], None] = lambda names: None,
    ) -> None:
        self._file = file
        self._default = default
        self._on_names = on_names
        self._lines: tuple[bytes, ...] = ()
        self._keys: tuple[tuple[bytes, ClientKey], ...] = ()
        self._accepted: dict[bytes, ClientKey] = {}
        self.malformed = False
        """True while the file holds something that can't be understood."""
        self.credential_headers: frozenset[bytes] = frozenset() if file is None else CREDENTIAL_HEADERS
        """Lower-case names of headers that must not be passed on."""

    @property
    def enabled(self) -> bool:
        """True when a key is asked for."""
        return self._file is not None

    def prime(self) -> None:
        """Read the file now, not with the first request: it may be spoilt by then, and these keys stay good.

        Raises:
            AuthenticationUnavailable: the keys can't be read.
        """
        if self._file is not None:
            self._current(self._file)

    def check(self, headers: Sequence[tuple[bytes, bytes]]) -> ClientKey | None:
        """The key the request came with, None when none is asked for.

        Raises:
            Unauthorized: it came with none that is known.
            AuthenticationUnavailable: the keys can't be read.
        """
        file = self._file
        if file is None:
            return None
        self._current(file)
        for presented in _credentials(headers):
            if (key := self._find(presented)) is not None:
                return key
        raise Unauthorized

    def _current(self, file: TokenFile) -> None:
        try:
            lines = file.tokens()
        except TokenUnavailable as error:
            raise AuthenticationUnavailable from error
        if lines is not self._lines:
            self._take(lines)

    def _take(self, lines: tuple[bytes, ...]) -> None:
        self._lines = lines
        try:
            keys = parse_keys(lines, default=self._default)
        except MalformedKeys as error:
            self.malformed = True
            log.error("the key file can't be understood, the keys read before stay good: %s", error)  # noqa: TRY400
            if not self._keys:
                self._lines = ()
                raise AuthenticationUnavailable from error
            return
        self.malformed = False
        self._keys = tuple((hashlib.sha256(key.secret).digest(), key) for key in keys)
        self._accepted.clear()
        self._on_names([key.name for key in keys])

    def _find(self, presented: bytes) -> ClientKey | None:
        # Looked up by a keyed hash; only what the full comparison below once accepted is ever found.
        known = self._accepted.get(presented)
        if known is not None:
            return known
        digest = hashlib.sha256(presented).digest()
        found: ClientKey | None = None
        for expected, key in self._keys:
            if hmac.compare_digest(expected, digest) and found is None:
                found = key
        if found is not None:
            self._accepted[presented] = found
        return found


def _credentials(headers: Sequence[tuple[bytes, bytes]]) -> Sequence[bytes]:
    if len(headers) == 1 and headers[0][0] == b"authorization":  # what nearly every client sends
        value = headers[0][1]
        return (value[7:],) if value[:7].lower() == b"bearer " else ()
    seen: set[bytes] = set()
    found: list[bytes] = []
    for name, value in headers:
        if len(name) not in _LENGTHS:
            continue
        lowered = name.lower()
        if lowered not in CREDENTIAL_HEADERS or lowered in seen:
            continue
        seen.add(lowered)
        if lowered == b"authorization":
            scheme, _, credential = value.partition(b" ")
            if scheme.lower() == b"bearer":
                found.append(credential)
        else:
            found.append(value)
    return found
