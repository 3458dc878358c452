"""AWS Signature Version 4 as a server checks it: in the Authorization header or in a presigned query.

Written from AWS's description of the canonical request for S3 (path encoded once, payload hash taken from
`x-amz-content-sha256`).
"""

import datetime
import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from noctaya_model_hub.exchange import Request

_ALGORITHM = "AWS4-HMAC-SHA256"
_UNSIGNED = "UNSIGNED-PAYLOAD"
_HEADER = re.compile(
    rf"{_ALGORITHM} Credential=([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{{64}})"
)
_TOLERANCE = datetime.timedelta(minutes=15)


class Refused(Exception):
    """A request is not signed by somebody we know. `code` is S3's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def check_signature(request: Request, keys: Mapping[str, str], *, now: datetime.datetime) -> None:
    """Check a request against the known secret keys, by access key id.

    Raises:
        Refused: with the code that S3 would give.
    """
    query = parse_qsl(urlsplit(request.target).query, keep_blank_values=True)
    given = dict(query)
    if "X-Amz-Signature" in given:
        credential, signed = given["X-Amz-Credential"], given["X-Amz-SignedHeaders"]
        signature, stamp, payload = given["X-Amz-Signature"], given["X-Amz-Date"], _UNSIGNED
        query = [(name, value) for name, value in query if name != "X-Amz-Signature"]
        lifetime = datetime.timedelta(seconds=int(given["X-Amz-Expires"]))
    else:
        found = _HEADER.fullmatch(request.headers.get("authorization", ""))
        if found is None:
            raise Refused("AccessDenied", "the request carries no Signature Version 4")
        credential, signed, signature = found.groups()
        stamp = request.headers.get("x-amz-date", "")
        payload = request.headers.get("x-amz-content-sha256", "")
        lifetime = _TOLERANCE
    _check_age(stamp, lifetime, now)
    access_key, _, scope = credential.partition("/")
    secret = keys.get(access_key)
    if secret is None:
        raise Refused("InvalidAccessKeyId", f"nobody has the access key {access_key}")
    if "host" not in signed.split(";"):
        raise Refused("AccessDenied", "the host header is not signed")
    expected = signature_of(
        request,
        secret=secret,
        stamp=stamp,
        scope=scope,
        signed=signed.split(";"),
        query=query,
        payload=payload,
    )
    if not hmac.compare_digest(expected, signature):
        raise Refused("SignatureDoesNotMatch", "the signature is not the one we calculate")


def sign(
    request: Request, *, access_key: str, secret: str, now: datetime.datetime, region: str = "us-east-1"
) -> dict[str, str]:
    """The headers that sign a request without a body; its host header must be set."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    added = {"x-amz-date": stamp, "x-amz-content-sha256": hashlib.sha256(b"").hexdigest()}
    full = Request(method=request.method, target=request.target, headers={**request.headers, **added})
    signed = sorted(full.headers)
    signature = signature_of(
        full,
        secret=secret,
        stamp=stamp,
        scope=scope,
        signed=signed,
        query=parse_qsl(urlsplit(request.target).query, keep_blank_values=True),
        payload=added["x-amz-content-sha256"],
    )
    credential = f"Credential={access_key}/{scope}, SignedHeaders={';'.join(signed)}, Signature={signature}"
    return {**added, "authorization": f"{_ALGORITHM} {credential}"}


def signature_of(
    request: Request,
    *,
    secret: str,
    stamp: str,
    scope: str,
    signed: list[str],
    query: list[tuple[str, str]],
    payload: str,
) -> str:
    """The signature, in hexadecimal, of a request whose headers `signed` are part of it."""
    canonical = "\n".join(
        [
            request.method,
            quote(unquote(request.path), safe="/-_.~"),
            "&".join(
                f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(query)
            ),
            *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in signed),
            "",
            ";".join(signed),
            payload,
        ]
    )
    return _sign(secret, stamp, scope, canonical)


def _check_age(stamp: str, lifetime: datetime.timedelta, now: datetime.datetime) -> None:
    try:
        when = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC)
    except ValueError:
        raise Refused("AccessDenied", "the request has no X-Amz-Date") from None
    if not -_TOLERANCE <= now - when <= lifetime:
        raise Refused("RequestTimeTooSkewed", "the request was signed too long ago, or in the future")


def _sign(secret: str, stamp: str, scope: str, canonical: str) -> str:
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join([_ALGORITHM, stamp, scope, hashed])
    return hmac.digest(key, text.encode(), "sha256").hex()
