"""When a certificate ends, read from its PEM.

The standard library can load a certificate of one's own but tells nothing of it, and a library that can would
be the largest dependency of the gateway. The end of validity stands at a fixed place of the structure (RFC
5280, 4.1), so it takes walking over five elements, no more.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


class MalformedCertificate(ValueError):
    """Not a certificate as RFC 5280 has it."""


def not_after(pem: bytes) -> datetime:
    """End of validity of the first certificate of a PEM file.

    Raises:
        MalformedCertificate: there is none, or it is broken.
    """
    text = pem.decode("ascii", errors="replace")
    start, end = text.find(_BEGIN), text.find(_END)
    if start < 0 or end < start:
        raise MalformedCertificate("no PEM certificate")
    try:
        der = ssl.PEM_cert_to_DER_cert(text[start : end + len(_END)])
    except ValueError as error:
        raise MalformedCertificate("the PEM text can't be decoded") from error
    certificate = _content(der, 0, _SEQUENCE)
    signed = _content(certificate, 0, _SEQUENCE)
    position = 0
    if signed[:1] == bytes([_VERSION]):
        position = _end(signed, position)
    for _ in ("serial number", "signature", "issuer"):
        position = _end(signed, position)
    validity = _content(signed, position, _SEQUENCE)
    return _time(validity, _end(validity, 0))


def _element(data: bytes, position: int) -> tuple[int, int, int]:
    """Tag, begin and end of the content of the element at `position`."""
    if position + 2 > len(data):
        raise MalformedCertificate("it ends too early")
    tag, length, begin = data[position], data[position + 1], position + 2
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= 4:
            raise MalformedCertificate("a length that DER doesn't have")
        length = int.from_bytes(data[begin : begin + count], "big")
        begin += count
    if begin + length > len(data):
        raise MalformedCertificate("it ends too early")
    return tag, begin, begin + length


def _content(data: bytes, position: int, tag: int) -> bytes:
    found, begin, end = _element(data, position)
    if found != tag:
        raise MalformedCertificate(f"element {found:#x} where {tag:#x} belongs")
    return data[begin:end]


def _end(data: bytes, position: int) -> int:
    return _element(data, position)[2]


def _time(data: bytes, position: int) -> datetime:
    tag, begin, end = _element(data, position)
    text = data[begin:end].decode("ascii", errors="replace")
    try:
        if tag == _UTC_TIME:
            # Two digits of the year; RFC 5280 puts the turn at 50, strptime at 69.
            year = int(text[:2])
            text = f"{2000 + year if year < 50 else 1900 + year}{text[2:]}"
        elif tag != _GENERALIZED_TIME:
            raise MalformedCertificate(f"element {tag:#x} where a time belongs")
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise MalformedCertificate("a time that can't be read") from error
