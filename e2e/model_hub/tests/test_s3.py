"""The S3 dialect: listings, ranges, errors. Signatures have a test of their own."""

import datetime
import urllib.parse
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator

import httpx
import pytest
from noctaya_model_hub import Hub, Pattern, Served, md5
from noctaya_model_hub.exchange import Request
from noctaya_model_hub.sigv4 import sign

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
ODD = "m/odd name+plus&and=ä.txt"


class Client:
    """Signs and sends."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.key, self.secret = "AKID", "secret/with+signs"

    async def get(self, path: str, **headers: str) -> httpx.Response:
        host = self._http.base_url.netloc.decode()
        request = Request(method="GET", target=path, headers={"host": host, **headers})
        now = datetime.datetime.now(datetime.UTC)
        made = sign(request, access_key=self.key, secret=self.secret, now=now)
        return await self._http.get(path, headers={**headers, **made})


@pytest.fixture
async def s3(served: Served, hub: Hub) -> AsyncIterator[Client]:
    hub.bucket("models", {"m/a.txt": "aaa", "m/w.bin": Pattern(size=2_000_001), ODD: "odd", "other": "x"})
    async with httpx.AsyncClient(base_url=served.s3_url, trust_env=False) as http:
        client = Client(http)
        hub.s3_keys[client.key] = client.secret
        yield client


async def test_a_listing_has_pages(s3: Client, hub: Hub) -> None:
    hub.page_size = 2
    found: list[tuple[str, int, str]] = []
    token, pages = "", 0
    while True:
        after = f"&continuation-token={urllib.parse.quote(token, safe='')}" if token else ""
        reply = await s3.get(f"/models?list-type=2&prefix=m%2F{after}")
        page = ET.fromstring(reply.content)
        pages += 1
        for one in page.iter(f"{NAMESPACE}Contents"):
            key, size, etag = (one.findtext(f"{NAMESPACE}{name}", "") for name in ("Key", "Size", "ETag"))
            found.append((key, int(size), etag))
        token = page.findtext(f"{NAMESPACE}NextContinuationToken", "")
        if page.findtext(f"{NAMESPACE}IsTruncated") == "false":
            break
    weights = hub.buckets["models"]["m/w.bin"]
    assert [one[0] for one in found] == ["m/a.txt", ODD, "m/w.bin"]
    assert found[2][1:] == (2_000_001, f'"{md5(weights)}"')
    assert pages == 2


async def test_keys_are_encoded_when_asked_for(s3: Client) -> None:
    reply = await s3.get("/models?encoding-type=url&list-type=2&prefix=m%2Fodd")
    assert f"<Key>{urllib.parse.quote(ODD)}</Key>" in reply.text


async def test_objects_and_ranges_of_them(s3: Client) -> None:
    assert (await s3.get(f"/models/{urllib.parse.quote(ODD)}")).text == "odd"
    part = await s3.get("/models/m/w.bin", range="bytes=1048576-1048599")
    assert part.status_code == 206
    assert part.content == b"".join(Pattern(size=2_000_001).pieces(1048576, 1048600))


async def test_an_object_that_changed_is_412(s3: Client) -> None:
    reply = await s3.get("/models/m/a.txt", **{"if-match": '"other"'})
    assert reply.status_code == 412
    assert "PreconditionFailed" in reply.text


async def test_strangers_are_refused_unless_the_hub_has_no_keys(s3: Client, served: Served, hub: Hub) -> None:
    async with httpx.AsyncClient(base_url=served.s3_url, trust_env=False) as http:
        assert (await http.get("/models/m/a.txt")).status_code == 403
        s3.secret = "wrong"
        reply = await s3.get("/models/m/a.txt")
        assert (reply.status_code, "SignatureDoesNotMatch" in reply.text) == (403, True)
        hub.s3_keys.clear()
        assert (await http.get("/models/m/a.txt")).text == "aaa"


@pytest.mark.parametrize(("path", "code"), [("/none/a", "NoSuchBucket"), ("/models/z", "NoSuchKey")])
async def test_what_is_missing(s3: Client, path: str, code: str) -> None:
    reply = await s3.get(path)
    assert (reply.status_code, code in reply.text) == (404, True)
