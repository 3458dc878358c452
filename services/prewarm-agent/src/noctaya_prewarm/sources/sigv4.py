"""AWS Signature Version 4 in a URL's query, from its public description. Pure: the moment is an argument."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlsplit

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SERVICE: Final = "s3"
_PAYLOAD: Final = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True, kw_only=True)
class Keys:
    """An access key; `session_token` only for temporary ones."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def encode(text: str, *, safe: str = "") -> str:
    """Percent-encode as the signature wants it: all but unreserved characters and those in `safe`."""
    return quote(text, safe=f"-_.~{safe}")


def presign(
    method: str,
    url: str,
    *,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    keys: Keys,
    region: str,
    now: datetime,
    lifetime: int,
) -> str:
    """A URL that carries its own permission.

    Args:
        method: of the request that will be sent.
        url: scheme, host and encoded path, without a query.
        query: parameters of the request.
        headers: headers that will be sent and are part of the signature, besides Host.
        keys: who signs.
        region: of the bucket.
        now: the moment, in UTC.
        lifetime: seconds that the URL is good for.
    """
    parts = urlsplit(url)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    scope = f"{day}/{region}/{_SERVICE}/aws4_request"
    signed = {
        "host": parts.netloc,
        **{name.lower(): " ".join(value.split()) for name, value in headers.items()},
    }
    names = ";".join(sorted(signed))
    parameters = {
        **query,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access_key}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(lifetime),
        "X-Amz-SignedHeaders": names,
        **({"X-Amz-Security-Token": keys.session_token} if keys.session_token else {}),
    }
    text = plain_query(parameters)
    canonical = "\n".join(
        [
            method,
            parts.path or "/",
            text,
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            _PAYLOAD,
        ]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{keys.secret_key}".encode()
    for step in (day, region, _SERVICE, "aws4_request"):
        key = _mac(key, step)
    signature = _mac(key, "\n".join([_ALGORITHM, stamp, scope, digest])).hex()
    return f"{url}?{text}&X-Amz-Signature={signature}"


def plain_query(parameters: Mapping[str, str]) -> str:
    """A query string in the order and encoding that signatures are made over."""
    return "&".join(f"{encode(name)}={encode(value)}" for name, value in sorted(parameters.items()))


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
