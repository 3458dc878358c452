"""Client authentication by API key (contracts 3.4, behaviour G10).

The key comes from a mounted Secret file that may hold several keys, one a line. A request presents one
as `Authorization: Bearer <key>` (any case of the scheme), `x-api-key` or `api-key`; only the first
header of each name counts. Comparison is in constant time over digests (`TokenFile`). With
authentication on, the credential headers never reach the backend; with it off they pass through.
"""

from __future__ import annotations

from collections.abc import Sequence

from noctaya_api.process.token_file import TokenFile, TokenUnavailable

from noctaya_gateway.errors import AuthenticationUnavailable, Unauthorized

CREDENTIAL_HEADERS = frozenset({b"authorization", b"x-api-key", b"api-key"})
_LENGTHS = frozenset(len(name) for name in CREDENTIAL_HEADERS)


class Authenticator:
    """Lets requests in by key; `keys` None switches it off."""

    def __init__(self, keys: TokenFile | None) -> None:
        self._keys = keys
        self.credential_headers: frozenset[bytes] = frozenset() if keys is None else CREDENTIAL_HEADERS
        """Lower-case names of headers that must not be passed on."""

    @property
    def enabled(self) -> bool:
        """True when a key is asked for."""
        return self._keys is not None

    def check(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Raise Unauthorized or AuthenticationUnavailable, or return when the request may come in."""
        keys = self._keys
        if keys is None:
            return
        try:
            for presented in _credentials(headers):
                if keys.matches(presented):
                    return
            keys.tokens()
        except TokenUnavailable as error:
            raise AuthenticationUnavailable from error
        raise Unauthorized


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
