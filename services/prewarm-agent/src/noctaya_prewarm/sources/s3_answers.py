"""What an S3 server answers, as values or errors. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote
from xml.etree import ElementTree

from noctaya_prewarm.answers import REMEDY
from noctaya_prewarm.digest import Digest, Kind, hex_of_base64
from noctaya_prewarm.errors import BadSettings, NetworkFault, NotAuthorised, NotFound, PrewarmError
from noctaya_prewarm.retry import Retryable, asked_pause

_MD5: Final = re.compile(r"[0-9a-f]{32}")
_PARTED: Final = re.compile(r"[0-9a-f]{32}-([1-9][0-9]{0,4})")
_DENIED: Final = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One object of a listing."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page of a listing; `following` asks for the next one and is empty on the last."""

    objects: tuple[Listed, ...]
    following: str


def parse_page(body: bytes) -> Page:
    """A page of ListObjectsV2, asked for with `encoding-type=url`.

    Raises:
        NetworkFault: the body is something else.
    """
    try:
        # The parser's library refuses entity bombs itself; the size is bounded by the caller.
        root = ElementTree.fromstring(body)  # noqa: S314
    except ElementTree.ParseError as error:
        raise NetworkFault(f"the S3 server answers a listing with something else: {error}") from error
    if not root.tag.endswith("ListBucketResult"):
        raise NetworkFault(f"the S3 server answers a listing with <{root.tag}>")
    try:
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        encoded = root.findtext("EncodingType") == "url"
        objects = tuple(_listed(item, encoded=encoded) for item in root.iter("Contents"))
        more = root.findtext("IsTruncated") == "true"
        return Page(objects=objects, following=root.findtext("NextContinuationToken", "") if more else "")
    except ValueError as error:
        raise NetworkFault(f"the S3 server lists an object without a size: {error}") from error


def digest_of_head(headers: Mapping[str, str], etag: str) -> Digest | None:
    """What an object's headers prove of its content; None without a proof. Names are in lower case."""
    # A checksum over checksums of parts says so, and ends with their number where it doesn't.
    if headers.get("x-amz-checksum-type", "FULL_OBJECT") == "FULL_OBJECT":
        for name, kind in (("sha256", Kind.SHA256), ("crc32", Kind.CRC32)):
            value = headers.get(f"x-amz-checksum-{name}", "")
            if value and "-" not in value:
                return Digest(kind=kind, value=hex_of_base64(value))
    return Digest(kind=Kind.MD5, value=etag) if _MD5.fullmatch(etag) and is_plain(headers) else None


def parts_of(etag: str, headers: Mapping[str, str]) -> int:
    """How many parts an ETag is made over; 0 when it is something else. `headers` are the object's."""
    found = _PARTED.fullmatch(etag)
    return int(found[1]) if found and is_plain(headers) else 0


def is_plain(headers: Mapping[str, str]) -> bool:
    """Whether an ETag can be an MD5 of the content: not under a key of KMS or of the customer."""
    encryption = headers.get("x-amz-server-side-encryption", "AES256")
    return encryption == "AES256" and "x-amz-server-side-encryption-customer-algorithm" not in headers


def failure(status: int, headers: Mapping[str, str], body: bytes, where: str) -> PrewarmError | Retryable:
    """The error for an answer that is none. `where` names what was asked, for people."""
    code, message = _code_of(body)
    text = f"{where} answers {status} {code} {message}".rstrip()
    if status in {408, 429} or status >= 500:
        return Retryable(text, after=asked_pause(headers))
    if code in _DENIED or status in {401, 403}:
        return NotAuthorised(f"{text}; {REMEDY}")
    if code in {"NoSuchBucket", "NoSuchKey"} or status == 404:
        return NotFound(f"{text}; check the bucket and the endpoint")
    if status in {301, 400}:
        return BadSettings(f"{text}; is that the right region (model.source.region) and endpoint?")
    return NetworkFault(text)


def _listed(item: ElementTree.Element, *, encoded: bool) -> Listed:
    key = item.findtext("Key", "")
    return Listed(
        key=unquote(key) if encoded else key,
        size=int(item.findtext("Size", "")),
        etag=item.findtext("ETag", "").strip('"'),
    )


def _code_of(body: bytes) -> tuple[str, str]:
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  as above
    except ElementTree.ParseError:
        return "", ""
    texts = (root.findtext(name, "") for name in ("Code", "Message"))
    code, message = ("".join(letter for letter in text if letter.isprintable())[:200] for text in texts)
    return code, message
