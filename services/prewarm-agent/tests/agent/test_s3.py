"""S3: signing by the published example, what proves an object's content, and what is said when it fails."""

import base64
import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from noctaya_model_hub import Effect, Hub, Match, Pattern, Served
from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.errors import BadSettings, IntegrityFault, NetworkFault, NotAuthorised, NotFound, Refused
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.sources.s3_answers import digest_of_head, failure, parse_page, parts_of
from noctaya_prewarm.sources.sigv4 import Keys, presign

from .kit import MIB, fetch, marker_of

PARTED = "9f1e1f8c1a2b3c4d5e6f708192a3b4c5-3"
MD5 = "9f1e1f8c1a2b3c4d5e6f708192a3b4c5"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "AWS_ACCESS_KEY_ID").write_text("AKID\n")
    (folder / "AWS_SECRET_ACCESS_KEY").write_text("very/secret+key\n")
    return folder


@pytest.fixture
def bucket(hub: Hub) -> Hub:
    hub.s3_keys["AKID"] = "very/secret+key"
    hub.bucket(
        "weights",
        {
            "llm/config.json": "{}",
            "llm/w 1+ü.safetensors": Pattern(size=3 * MIB + 1, seed=1),
            "llm/deep/er/x.txt": "x",
            "llm/folder/": "",
            "other/y": "y",
        },
    )
    return hub


def test_a_url_is_signed_as_in_amazons_published_example() -> None:
    url = presign(
        "GET",
        "https://examplebucket.s3.amazonaws.com/test.txt",
        query={},
        headers={},
        keys=Keys(access_key="AKIAIOSFODNN7EXAMPLE", secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        region="us-east-1",
        now=datetime(2013, 5, 24, tzinfo=UTC),
        lifetime=86400,
    )
    assert url == (
        "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


def test_objects_below_the_prefix_arrive_with_odd_names_and_without_folders(
    served: Served, bucket: Hub, target: Path, secret: Path
) -> None:
    fetch(served, target, source="s3://weights/llm", endpoint=served.s3_url, secret_dir=secret)
    paths = {file.path for file in marker_of(target).files}
    assert paths == {"config.json", "w 1+ü.safetensors", "deep/er/x.txt"}
    found = hashlib.md5((target / "w 1+ü.safetensors").read_bytes(), usedforsecurity=False).hexdigest()
    assert found == next(file.md5 for file in marker_of(target).files if file.path.startswith("w"))


def test_a_listing_of_many_pages_is_read_to_its_end(served: Served, hub: Hub, target: Path) -> None:
    hub.page_size = 3
    hub.bucket("many", {f"m/{n:03}": str(n) for n in range(10)})
    fetch(served, target, source="s3://many/m", endpoint=served.s3_url)
    assert len(marker_of(target).files) == 10


def test_m1_an_object_that_is_replaced_meanwhile_is_listed_again(
    served: Served, bucket: Hub, target: Path, secret: Path
) -> None:
    def replace() -> None:
        bucket.bucket("weights", {"llm/config.json": '{"new": 1}'})

    bucket.faults.add(
        Match(route="s3-get", path="llm/config.json", method="GET", calls={1}), Effect(then=replace)
    )
    run = fetch(served, target, source="s3://weights/llm", endpoint=served.s3_url, secret_dir=secret)
    assert run.progress.snapshot().attempt == 2
    assert (target / "config.json").read_text() == '{"new": 1}'


def test_m1_wrong_bytes_of_an_object_are_noticed(
    served: Served, bucket: Hub, target: Path, secret: Path
) -> None:
    bucket.faults.add(Match(route="s3-get", path="*.safetensors", method="GET"), Effect(flip_at=MIB))
    with pytest.raises(IntegrityFault, match="md5"):
        fetch(served, target, source="s3://weights/llm", endpoint=served.s3_url, secret_dir=secret)
    assert not target.exists()


def test_m3_a_wrong_key_is_not_authorised_and_not_shown(
    served: Served, bucket: Hub, target: Path, secret: Path
) -> None:
    (secret / "AWS_SECRET_ACCESS_KEY").write_text("wr0ng")
    with pytest.raises(NotAuthorised, match="SignatureDoesNotMatch") as caught:
        fetch(served, target, source="s3://weights/llm", endpoint=served.s3_url, secret_dir=secret)
    assert "wr0ng" not in str(caught.value)


def test_keys_come_from_the_environment_without_a_secret(
    served: Served, bucket: Hub, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very/secret+key")
    fetch(served, target, source="s3://weights/other", endpoint=served.s3_url)
    assert (target / "y").read_text() == "y"


@pytest.mark.parametrize("in_secret", [True, False])
def test_half_a_key_is_told(
    served: Served, hub: Hub, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_secret: bool
) -> None:
    if in_secret:
        (tmp_path / "AWS_ACCESS_KEY_ID").write_text("AKID")
        (tmp_path / "ca.crt").write_text("")
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    with pytest.raises(BadSettings, match="only one has a value"):
        fetch(
            served,
            target,
            source="s3://weights/m",
            endpoint=served.s3_url,
            secret_dir=tmp_path if in_secret else None,
        )


def test_what_is_not_there_is_named(served: Served, hub: Hub, target: Path) -> None:
    hub.bucket("weights", {"a": "a"})
    with pytest.raises(NotFound, match="no object below s3://weights/none/"):
        fetch(served, target, source="s3://weights/none", endpoint=served.s3_url)
    with pytest.raises(NotFound, match="NoSuchBucket"):
        fetch(served, target, source="s3://absent/x", endpoint=served.s3_url)


def test_m4_a_key_that_leaves_the_target_is_refused(served: Served, hub: Hub, target: Path) -> None:
    hub.bucket("weights", {"m/../../etc/x": "x"})
    with pytest.raises(Refused):
        fetch(served, target, source="s3://weights/m", endpoint=served.s3_url)


@pytest.mark.parametrize(
    ("headers", "etag", "digest"),
    [
        ({}, MD5, Digest(kind=Kind.MD5, value=MD5)),
        ({"x-amz-server-side-encryption": "AES256"}, MD5, Digest(kind=Kind.MD5, value=MD5)),
        ({"x-amz-server-side-encryption": "aws:kms"}, MD5, None),
        ({"x-amz-server-side-encryption-customer-algorithm": "AES256"}, MD5, None),
        ({}, PARTED, None),
        ({}, "opaque", None),
        (
            {"x-amz-checksum-sha256": base64.b64encode(bytes(range(32))).decode()},
            PARTED,
            Digest(kind=Kind.SHA256, value=bytes(range(32)).hex()),
        ),
        ({"x-amz-checksum-crc32": "AAEC/w=="}, "x", Digest(kind=Kind.CRC32, value="000102ff")),
        ({"x-amz-checksum-crc32": "AAEC/w==-3"}, "x", None),
        ({"x-amz-checksum-crc32": "AAEC/w==", "x-amz-checksum-type": "COMPOSITE"}, "x", None),
    ],
)
def test_m1_only_what_proves_the_content_counts(
    headers: dict[str, str], etag: str, digest: Digest | None
) -> None:
    assert digest_of_head(headers, etag) == digest


def test_an_etag_of_parts_is_known_by_its_form() -> None:
    assert parts_of(PARTED, {}) == 3
    assert parts_of(MD5, {}) == 0
    assert parts_of(PARTED, {"x-amz-server-side-encryption": "aws:kms"}) == 0


@pytest.mark.parametrize(
    "body", [b"", b"<html/>", b"<ListBucketResult><Contents/></ListBucketResult>", b"{}"]
)
def test_an_answer_that_is_no_listing_is_a_fault(body: bytes) -> None:
    with pytest.raises(NetworkFault):
        parse_page(body)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (503, "SlowDown", Retryable),
        (500, "InternalError", Retryable),
        (403, "AccessDenied", NotAuthorised),
        (400, "ExpiredToken", NotAuthorised),
        (404, "NoSuchBucket", NotFound),
        (400, "AuthorizationQueryParametersError", BadSettings),
        (301, "PermanentRedirect", BadSettings),
        (405, "MethodNotAllowed", NetworkFault),
    ],
)
def test_s3_errors_have_their_meaning(status: int, code: str, kind: type[Exception]) -> None:
    body = f"<Error><Code>{code}</Code><Message>because</Message></Error>".encode()
    found = failure(status, {}, body, "s3://b/p/")
    assert type(found) is kind
    assert "s3://b/p/" in str(found)
    assert code in str(found)
