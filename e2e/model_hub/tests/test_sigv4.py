"""Signatures, judged by the examples that AWS publishes with its description of the procedure for S3."""

import datetime

import pytest
from noctaya_model_hub.exchange import Request
from noctaya_model_hub.sigv4 import Refused, check_signature, sign

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
HOST = {"host": "examplebucket.s3.amazonaws.com"}
NOW = datetime.datetime(2013, 5, 24, tzinfo=datetime.UTC)
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("target", "headers", "signature"),
    [
        (
            "/test.txt",
            {"range": "bytes=0-9"},
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        ("/?lifecycle", {}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("/?max-keys=2&prefix=J", {}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_the_published_examples_are_accepted(target: str, headers: dict[str, str], signature: str) -> None:
    unsigned = Request(method="GET", target=target, headers=HOST | headers)
    made = sign(unsigned, access_key=KEY, secret=SECRET, now=NOW)
    assert made["authorization"].endswith(f"Signature={signature}")
    signed = Request(method="GET", target=target, headers={**unsigned.headers, **made})
    check_signature(signed, {KEY: SECRET}, now=NOW)
    other = Request(method="GET", target=target, headers={**signed.headers, "host": "evil.example"})
    with pytest.raises(Refused, match="not the one"):
        check_signature(other, {KEY: SECRET}, now=NOW)


PRESIGNED = (
    "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3"
    "%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
    "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
)


def test_the_published_presigned_address_is_accepted_for_a_day() -> None:
    request = Request(method="GET", target=PRESIGNED, headers=HOST)
    check_signature(request, {KEY: SECRET}, now=NOW + datetime.timedelta(days=1))
    with pytest.raises(Refused, match="too long ago"):
        check_signature(request, {KEY: SECRET}, now=NOW + datetime.timedelta(days=1, seconds=1))
    changed = Request(method="GET", target=PRESIGNED.replace("test.txt", "other.txt"), headers=HOST)
    with pytest.raises(Refused, match="not the one"):
        check_signature(changed, {KEY: SECRET}, now=NOW)


def authorization(*, key: str = KEY, signed: str = "host", signature: str = EMPTY) -> str:
    credential = f"Credential={key}/20130524/us-east-1/s3/aws4_request"
    return f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={signed}, Signature={signature}"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("", "AccessDenied"),
        ("Bearer token", "AccessDenied"),
        (authorization(signature="00"), "AccessDenied"),
        (authorization(key="X"), "InvalidAccessKeyId"),
        (authorization(signed="x-amz-date"), "AccessDenied"),
        (authorization(), "SignatureDoesNotMatch"),
    ],
)
def test_strangers_are_refused(value: str, code: str) -> None:
    headers = {**HOST, "authorization": value, "x-amz-date": "20130524T000000Z"}
    with pytest.raises(Refused) as caught:
        check_signature(Request(method="GET", target="/", headers=headers), {KEY: SECRET}, now=NOW)
    assert caught.value.code == code


@pytest.mark.parametrize("minutes", [-16, 16])
def test_a_signature_of_another_time_is_refused(minutes: int) -> None:
    request = Request(method="GET", target="/", headers=HOST)
    made = sign(request, access_key=KEY, secret=SECRET, now=NOW)
    signed = Request(method="GET", target="/", headers={**HOST, **made})
    with pytest.raises(Refused, match="too long ago, or in the future"):
        check_signature(signed, {KEY: SECRET}, now=NOW + datetime.timedelta(minutes=minutes))
