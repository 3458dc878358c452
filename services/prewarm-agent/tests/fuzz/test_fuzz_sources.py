"""M3, M4: whatever a hub, a mirror or a bucket answers ends in a listing or in one named error."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from noctaya_prewarm.errors import PrewarmError
from noctaya_prewarm.listing import Listing, check
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.sources.s3_answers import failure, parse_page
from noctaya_prewarm.sources.source import open_source, parse_source
from noctaya_prewarm.trust import tls_context

sys.path.insert(0, str(Path(__file__).parent))

from hostile_server import HostileServer

TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
NAMES = st.sampled_from(
    [
        "sha",
        "siblings",
        "path",
        "type",
        "size",
        "oid",
        "lfs",
        "sha256",
        "file",
        "directory",
        "pointerSize",
        "Data",
        "Files",
        "Path",
        "Name",
        "Size",
        "Sha256",
        "Type",
        "Code",
        "Success",
        "Message",
        "tree",
        "error",
        "id",
        "modelId",
        "commit",
        "Revision",
        "BlobId",
        "IsLFS",
        "TotalCount",
        "data",
        "files",
    ]
)
JSON = st.recursive(
    SCALARS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXT, inner, max_size=6),
    max_leaves=20,
)
ENTRY = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["file", "directory"]) | SCALARS,
        "path": st.sampled_from(["a", "a/b", "../x", "/etc/x", "a\0b", "", "."]) | SCALARS,
        "size": st.integers() | SCALARS,
        "oid": st.from_regex(r"[0-9a-f]{40}", fullmatch=True) | SCALARS,
    },
    optional={
        "lfs": st.fixed_dictionaries({"oid": SCALARS, "size": SCALARS, "pointerSize": SCALARS}) | SCALARS
    },
)
SECRET = "hub-secret-7c1d"


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running, pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("HF_", "AWS_", "MODELSCOPE_", "NOCTAYA_")) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        # Reading the machine's authorities takes far longer than an example, and is the same for all.
        context = tls_context(None)
        for module in ("s3", "huggingface"):
            patch.setattr(f"noctaya_prewarm.sources.{module}.tls_context", lambda _: context)
        yield running


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secret")
    for key in ("token", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        (folder / key).write_text(SECRET)
    return folder


def listed(server: HostileServer, secrets: Path, uri: str) -> Listing | None:
    """The listing if there is one; only the two kinds of errors that a run knows may come instead."""
    settings = AgentSettings(endpoint=server.url, secret_dir=secrets, listen_addr="127.0.0.1:0")
    try:
        return check(open_source(parse_source(uri, settings), settings).list())
    except (PrewarmError, Retryable) as error:
        assert SECRET not in str(error)
        return None


def assert_harmless(listing: Listing | None) -> None:
    for file in listing.files if listing else ():
        assert not file.path.is_absolute()
        assert ".." not in PurePosixPath(file.path).parts
        assert file.size >= 0


SOURCES = pytest.mark.parametrize(
    "uri", ["hf://org/model@main", "modelscope://org/model", "s3://bucket/model"]
)


@SOURCES
@given(document=JSON | st.lists(ENTRY, max_size=4) | st.fixed_dictionaries({"sha": TEXT}))
@example(document={"sha": 5})
@example(document={"sha": "\ud800"})
@example(document=[])
def test_fuzz_any_json_of_a_hub(server: HostileServer, secrets: Path, uri: str, document: Any) -> None:
    server.says(json.dumps(document).encode())
    assert_harmless(listed(server, secrets, uri))


@SOURCES
@given(body=st.binary(max_size=200))
@example(body=b"[" * 100_000)
@example(body=b'{"sha":' * 50_000)
def test_fuzz_any_body_of_a_hub(server: HostileServer, secrets: Path, uri: str, body: bytes) -> None:
    server.says(body)
    assert_harmless(listed(server, secrets, uri))


@given(
    answer=st.binary(max_size=100)
    | st.tuples(
        st.sampled_from([b"HTTP/1.1 ", b"HTTP/1.0 ", b"HTTP/9.9 "]),
        st.sampled_from([b"200", b"302", b"307", b"401", b"404", b"429", b"500", b"999", b"-1", b"0"]),
        st.sampled_from([b" OK\r\n", b"\r\n", b" \xff\r\n"]),
        st.lists(
            st.tuples(
                st.sampled_from(
                    [
                        b"Location",
                        b"Retry-After",
                        b"Content-Length",
                        b"Transfer-Encoding",
                        b"Content-Encoding",
                        b"X-Error-Code",
                        b"X-Error-Message",
                        b"Content-Range",
                        b"RateLimit",
                        b"Link",
                    ]
                ),
                st.binary(max_size=20)
                | st.sampled_from(
                    [
                        b"http://[",
                        b"http://127.0.0.1:99999/",
                        b"//[::1",
                        b"\x00",
                        b"chunked",
                        b"gzip",
                        b"-1",
                        b"Mon, 01 Jan 0001 00:00:00 GMT",
                        b"Mon, 99 Foo",
                        b"9" * 30,
                        b"nan",
                        b"<http://[>; rel=next",
                        b"bytes 0-0/0",
                    ]
                ),
            ).map(lambda pair: pair[0] + b": " + pair[1] + b"\r\n"),
            max_size=4,
        ).map(b"".join),
    ).map(lambda parts: b"".join(parts) + b"\r\n{}"),
)
def test_fuzz_any_answer_of_a_bucket(server: HostileServer, secrets: Path, answer: bytes) -> None:
    server.answer = answer
    assert_harmless(listed(server, secrets, "s3://bucket/model"))


XML = st.lists(
    st.sampled_from(
        [
            "<ListBucketResult>",
            "</ListBucketResult>",
            "<Contents>",
            "</Contents>",
            "<Key>",
            "</Key>",
            "<Size>",
            "</Size>",
            "<ETag>",
            "</ETag>",
            "<EncodingType>url</EncodingType>",
            "<IsTruncated>true</IsTruncated>",
            "1",
            "-1",
            "%00",
            "%ff",
            "%2e%2e/x",
            "9" * 5000,
            "&lt;",
            "<!--",
            "-->",
            "<![CDATA[",
            "]]>",
            "<NextContinuationToken>x</NextContinuationToken>",
            '<!DOCTYPE a [<!ENTITY b "c">]>',
            "&b;",
        ]
    )
    | st.text(max_size=5),
    max_size=30,
).map("".join)


@given(text=XML)
@example(text="<ListBucketResult>" * 100_000)
def test_fuzz_a_page_of_a_bucket(text: str) -> None:
    body = text.encode("utf-8", "surrogatepass")
    try:
        page = parse_page(body)
    except PrewarmError as error:
        assert str(error)
    else:
        assert all(isinstance(listed.size, int) for listed in page.objects)


@given(status=st.integers(300, 599), body=st.binary(max_size=100) | XML.map(str.encode))
def test_fuzz_an_error_of_a_bucket(status: int, body: bytes) -> None:
    assert str(failure(status, {}, body, "s3://bucket/")).isprintable()
