"""The end of a certificate's validity."""

import base64
from datetime import UTC, datetime

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_api.externalscaler.certificate import MalformedCertificate, not_after

KEY = ec.generate_private_key(ec.SECP256R1())


def pem(ends: datetime, *, serial: int = 1, name: str = "x") -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(
        issuer_name=subject,
        subject_name=subject,
        public_key=KEY.public_key(),
        serial_number=serial,
        not_valid_before=datetime(1990, 1, 1, tzinfo=UTC),
        not_valid_after=ends,
    )
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def wrapped(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(der) + b"\n-----END CERTIFICATE-----\n"


GOOD = base64.b64decode(b"".join(pem(datetime(2030, 1, 2, tzinfo=UTC)).splitlines()[1:-1]))


@given(
    st.datetimes(datetime(1991, 1, 1), datetime(9000, 1, 1)),
    st.integers(1, 2**158),
    st.text("abc ", min_size=1, max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_it_is_what_was_signed(ends: datetime, serial: int, name: str) -> None:
    wanted = ends.replace(microsecond=0, tzinfo=UTC)
    assert not_after(pem(wanted, serial=serial, name=name)) == wanted


def test_the_turn_of_two_digit_years_is_2050() -> None:
    for ends in (datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)):
        assert not_after(pem(ends)) == ends


def test_of_a_chain_the_first_counts() -> None:
    server = trustme.CA().issue_cert("a.example", not_after=datetime(2030, 1, 2, tzinfo=UTC))
    chain = server.cert_chain_pems[0].bytes() + pem(datetime(2040, 1, 1, tzinfo=UTC))
    assert not_after(b"a line before\n" + chain) == datetime(2030, 1, 2, tzinfo=UTC)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_what_is_no_certificate_is_refused_as_such(content: bytes) -> None:
    for text in (content, wrapped(content)):
        with pytest.raises(MalformedCertificate):
            not_after(text)


@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
@settings(deadline=None)
def test_a_damaged_certificate_gives_a_time_or_is_refused(place: int, value: int) -> None:
    der = bytearray(GOOD)
    der[place % len(der)] = value
    try:
        found = not_after(wrapped(bytes(der)))
    except MalformedCertificate as refused:
        assert str(refused)
    else:
        assert found.tzinfo is UTC
