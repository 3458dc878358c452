"""Each effect does on the wire what it says."""

import asyncio
from pathlib import Path

import httpx
import pytest
from noctaya_model_hub import Effect, Hub, Match, OnDisk, Pattern, Served, running_hub, too_many

SIZE = 3_000_007
CDN = Match(route="cdn", method="GET")


@pytest.fixture
async def location(served: Served, http: httpx.AsyncClient) -> str:
    reply = await http.get("/org/model/resolve/main/model.safetensors")
    return str(reply.headers["location"])


def weights() -> bytes:
    content = Pattern(size=SIZE, seed=7)
    return b"".join(content.pieces(0, SIZE))


async def test_only_the_numbered_calls_are_hit(hub: Hub, http: httpx.AsyncClient, location: str) -> None:
    fault = hub.faults.add(Match(route="cdn", calls={2, 3}), too_many(retry_after="7"))
    replies = [await http.head(location) for _ in range(4)]
    assert [one.status_code for one in replies] == [200, 429, 429, 200]
    assert replies[1].headers["retry-after"] == "7"
    assert hub.faults.hits(fault) == 4


async def test_a_cut_ends_the_connection_after_n_bytes(
    hub: Hub, http: httpx.AsyncClient, location: str
) -> None:
    hub.faults.add(CDN, Effect(cut_after=1_500_000))
    got = b""
    with pytest.raises(httpx.RemoteProtocolError):
        async with http.stream("GET", location, headers={"Range": "bytes=100-"}) as reply:
            async for piece in reply.aiter_raw():
                got += piece
    assert got == weights()[100:1_500_100]
    assert hub.requests.of("cdn")[-1].sent == 1_500_000


async def test_a_body_that_comes_slowly_hurries_once_the_faults_are_cleared(
    hub: Hub, http: httpx.AsyncClient, location: str
) -> None:
    hub.faults.add(CDN, Effect(bytes_per_second=SIZE / 600))
    got = 0
    async with http.stream("GET", location) as reply:
        async for piece in reply.aiter_raw():
            if not got:
                hub.faults.clear()
            got += len(piece)
    assert got == SIZE, "ten minutes would have been more than this test has"


async def test_a_reset_is_a_reset(hub: Hub, http: httpx.AsyncClient, location: str) -> None:
    hub.faults.add(CDN, Effect(cut_after=0, reset=True))
    with pytest.raises(httpx.ReadError):
        await http.get(location)


async def test_a_stall_keeps_the_connection_open_until_the_client_leaves(
    hub: Hub, http: httpx.AsyncClient, location: str
) -> None:
    hub.faults.add(CDN, Effect(stall_after=1000))
    got = 0
    with pytest.raises(httpx.ReadTimeout):
        async with http.stream("GET", location, timeout=0.3) as reply:
            async for piece in reply.aiter_raw():
                got += len(piece)
    assert got == 1000
    async with asyncio.timeout(10):
        seen = await hub.requests.wait_for("cdn")
    assert seen[0].sent == 1000


async def test_a_stopped_hub_lets_no_stalled_client_wait(hub: Hub, location: str) -> None:
    hub.faults.add(CDN, Effect(stall_after=10))
    async with running_hub(hub) as other:
        url = location.replace(location.split("/")[2], other.cdn_url.split("/")[2])
        async with httpx.AsyncClient(trust_env=False) as client:
            request = client.build_request("GET", url)
            reply = await client.send(request, stream=True)
            reading = asyncio.create_task(reply.aread())
    with pytest.raises(httpx.TransportError):
        await reading


@pytest.mark.parametrize("announce", [-1, 1])
async def test_a_wrong_length_is_announced(
    hub: Hub, http: httpx.AsyncClient, location: str, announce: int
) -> None:
    hub.faults.add(CDN, Effect(announce=announce))
    got = b""
    try:
        async with http.stream("GET", location) as reply:
            assert reply.headers["content-length"] == str(SIZE + announce)
            async for piece in reply.aiter_raw():
                got += piece
    except httpx.RemoteProtocolError:
        assert announce == 1
    assert got == weights()[: SIZE + announce]


async def test_one_byte_is_wrong_wherever_the_range_begins(
    hub: Hub, http: httpx.AsyncClient, location: str
) -> None:
    hub.faults.add(CDN, Effect(flip_at=2_000_000))
    expected = bytearray(weights())
    expected[2_000_000] ^= 0xFF
    assert (await http.get(location)).content == bytes(expected)
    part = await http.get(location, headers={"Range": "bytes=1999999-2000001"})
    assert part.content == bytes(expected[1_999_999:2_000_002])
    before = await http.get(location, headers={"Range": "bytes=0-1999999"})
    assert before.content == weights()[:2_000_000]


async def test_a_server_without_ranges_sends_the_whole(
    hub: Hub, http: httpx.AsyncClient, location: str
) -> None:
    hub.faults.add(CDN, Effect(keep_whole=True))
    reply = await http.get(location, headers={"Range": "bytes=5-9"})
    assert reply.status_code == 200
    assert "content-range" not in reply.headers
    assert reply.content == weights()


async def test_a_fault_can_wait_for_a_resume(hub: Hub, http: httpx.AsyncClient, location: str) -> None:
    hub.faults.add(Match(route="cdn", from_byte=1), Effect(status=503))
    assert (await http.get(location, headers={"Range": "bytes=0-3"})).status_code == 206
    assert (await http.get(location, headers={"Range": "bytes=4-7"})).status_code == 503


async def test_a_slow_body_takes_its_time(hub: Hub, http: httpx.AsyncClient) -> None:
    hub.small_redirects = False
    hub.create("org/slow", {"a.txt": b"x" * 1000})
    hub.faults.add(Match(route="resolve"), Effect(bytes_per_second=2000))
    began = asyncio.get_running_loop().time()
    reply = await http.get("/org/slow/resolve/main/a.txt")
    assert reply.content == b"x" * 1000
    assert asyncio.get_running_loop().time() - began >= 0.45


async def test_a_revision_moves_between_two_calls(hub: Hub, http: httpx.AsyncClient) -> None:
    hub.small_redirects = False
    repository = hub.repositories["org/model"]
    listed = repository.refs["main"]
    hub.faults.add(
        Match(route="resolve", path="config.json", calls={1}),
        Effect(then=lambda: repository.commit({"config.json": "moved"})),
    )
    reply = await http.get("/org/model/resolve/main/config.json")
    assert reply.text == "moved"
    assert reply.headers["x-repo-commit"] != listed
    pinned = await http.get(f"/org/model/resolve/{listed}/config.json")
    assert pinned.text == '{"model_type": "test"}\n'


async def test_headers_are_replaced_or_removed(hub: Hub, http: httpx.AsyncClient) -> None:
    hub.faults.add(Match(route="resolve"), Effect(headers=(("X-Repo-Commit", ""), ("etag", '"other"'))))
    reply = await http.head("/org/model/resolve/main/config.json")
    assert "x-repo-commit" not in reply.headers
    assert reply.headers["etag"] == '"other"'


async def test_a_redirect_loop_can_be_told(hub: Hub, served: Served, http: httpx.AsyncClient) -> None:
    hub.faults.add(
        Match(route="resolve"), Effect(redirect=f"{served.url}/org/model/resolve/main/config.json")
    )
    with pytest.raises(httpx.TooManyRedirects):
        await http.get("/org/model/resolve/main/config.json", follow_redirects=True)


async def test_a_file_on_disk_is_served_and_cut_like_any_other(
    hub: Hub, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    hub.small_redirects = False
    path = tmp_path / "weights"
    path.write_bytes(weights())
    hub.create("org/disk", {"a.txt": OnDisk(path)})
    url = "/org/disk/resolve/main/a.txt"
    assert (await http.get(url)).content == weights()
    part = await http.get(url, headers={"Range": "bytes=5-2999999"})
    assert part.content == weights()[5:3_000_000]
    hub.faults.add(Match(route="resolve", calls={1}), Effect(cut_after=1_000_000))
    with pytest.raises(httpx.RemoteProtocolError):
        await http.get(url)
    assert hub.requests.of("resolve")[-1].sent == 1_000_000
    hub.faults.clear()
    hub.faults.add(Match(route="resolve"), Effect(flip_at=7))
    assert (await http.get(url)).content[7] == weights()[7] ^ 0xFF
