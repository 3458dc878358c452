"""The S3 dialect: signatures made by botocore, listings, ranges, errors."""

import asyncio
import datetime
from typing import Any

import botocore.session
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from noctaya_model_hub import Hub, Pattern, Served, md5
from noctaya_model_hub.exchange import Request
from noctaya_model_hub.sigv4 import Refused, check_signature

KEYS = {"AKID": "secret/with+signs"}


@pytest.fixture(autouse=True)
def models_bucket(hub: Hub) -> None:
    hub.s3_keys |= KEYS
    odd = "m/odd name+plus&and=ä.txt"
    hub.bucket("models", {"m/a.txt": "aaa", "m/w.bin": Pattern(size=2_000_001), odd: "odd", "other": "x"})


def client(served: Served, *, key: str = "AKID", secret: str = KEYS["AKID"]) -> Any:
    session = botocore.session.Session()
    return session.create_client(
        "s3",
        endpoint_url=served.s3_url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            proxies={},
        ),
    )


async def test_a_listing_has_pages(served: Served, hub: Hub) -> None:
    hub.page_size = 2
    s3 = client(served)
    pages = await asyncio.to_thread(
        lambda: list(s3.get_paginator("list_objects_v2").paginate(Bucket="models", Prefix="m/"))
    )
    found = [one for page in pages for one in page["Contents"]]
    assert [one["Key"] for one in found] == ["m/a.txt", "m/odd name+plus&and=ä.txt", "m/w.bin"]
    assert [one["Size"] for one in found] == [3, 3, 2_000_001]
    assert found[2]["ETag"] == f'"{md5(hub.buckets["models"]["m/w.bin"])}"'
    assert len(pages) == 2


async def test_objects_and_ranges_of_them(served: Served) -> None:
    s3 = client(served)

    def get(**options: str) -> bytes:
        return bytes(s3.get_object(Bucket="models", **options)["Body"].read())

    assert await asyncio.to_thread(lambda: get(Key="m/odd name+plus&and=ä.txt")) == b"odd"
    part = await asyncio.to_thread(lambda: get(Key="m/w.bin", Range="bytes=1048576-1048599"))
    assert part == b"".join(Pattern(size=2_000_001).pieces(1048576, 1048600))


async def test_an_object_that_changed_is_412(served: Served) -> None:
    with pytest.raises(ClientError, match="PreconditionFailed"):
        await asyncio.to_thread(
            lambda: client(served).get_object(Bucket="models", Key="m/a.txt", IfMatch='"other"')
        )


@pytest.mark.parametrize(
    ("key", "secret", "code"),
    [("NOBODY", "x", "InvalidAccessKeyId"), ("AKID", "wrong", "SignatureDoesNotMatch")],
)
async def test_strangers_are_refused(served: Served, key: str, secret: str, code: str) -> None:
    s3 = client(served, key=key, secret=secret)
    with pytest.raises(ClientError, match=code):
        await asyncio.to_thread(lambda: s3.get_object(Bucket="models", Key="m/a.txt"))


async def test_unsigned_requests_are_refused_unless_the_hub_has_no_keys(served: Served, hub: Hub) -> None:
    async with httpx.AsyncClient(base_url=served.s3_url, trust_env=False) as http:
        assert (await http.get("/models/m/a.txt")).status_code == 403
        hub.s3_keys.clear()
        assert (await http.get("/models/m/a.txt")).text == "aaa"


async def test_a_presigned_address_serves_until_it_ends(served: Served) -> None:
    url = client(served).generate_presigned_url(
        "get_object", Params={"Bucket": "models", "Key": "m/a.txt"}, ExpiresIn=60
    )
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(url)).text == "aaa"
        assert (await http.get(url.replace("a.txt", "w.bin"))).status_code == 403
    host = url.split("/")[2]
    request = Request(method="GET", target=url.removeprefix(f"http://{host}"), headers={"host": host})
    late = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=61)
    with pytest.raises(Refused, match="too long ago"):
        check_signature(request, KEYS, now=late)


@pytest.mark.parametrize(
    ("bucket", "key", "code"), [("none", "a", "NoSuchBucket"), ("models", "z", "NoSuchKey")]
)
async def test_what_is_missing(served: Served, bucket: str, key: str, code: str) -> None:
    with pytest.raises(ClientError, match=code):
        await asyncio.to_thread(lambda: client(served).get_object(Bucket=bucket, Key=key))
