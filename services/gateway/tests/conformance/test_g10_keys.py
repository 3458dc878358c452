"""G10: keys: any scheme case, three headers, several keys with an overlap for rotation."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import ONE_ENGINE, Lend, Start
from .harness.backend import hold
from .harness.client import connected
from .harness.message import Header
from .harness.process import GatewayExitError
from .test_g2_errors import KEY, key_file

GOOD: list[Header] = [
    (b"Authorization", b"Bearer " + KEY),
    (b"authorization", b"bearer " + KEY),
    (b"AUTHORIZATION", b"BEARER " + KEY),
    (b"Authorization", b"bEaReR " + KEY),
    (b"x-api-key", KEY),
    (b"X-API-KEY", KEY),
    (b"api-key", KEY),
    (b"Api-Key", KEY),
]

BAD: list[Header] = [
    (b"Authorization", KEY),
    (b"Authorization", b"Basic " + KEY),
    (b"Authorization", b"Bearer"),
    (b"Authorization", b"Bearer "),
    (b"Authorization", b"Bearer " + KEY + b"x"),
    (b"Authorization", b"Bearer " + KEY[:-1]),
    (b"Authorization", b"Bearer " + KEY.upper()),
    (b"Authorization", b"Bearer " + KEY + b"," + KEY),
    (b"Authorization", b"Bearer" + KEY),
    (b"Authorization", b"Bearer \xff\xfe"),
    (b"x-api-key", b""),
    (b"x-api-key", b"Bearer " + KEY),
    (b"api-key", b"nope"),
    (b"Cookie", b"api-key=" + KEY),
    (b"Proxy-Authorization", b"Bearer " + KEY),
]


@pytest.mark.parametrize("header", GOOD, ids=str)
async def test_g10_every_way_to_present_the_key_is_accepted(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory, header: Header
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    assert (await rig.gateway.ask(headers=[header])).status == 200
    assert KEY not in (await rig.backend.call()).head.raw


@pytest.mark.parametrize("header", BAD, ids=str)
async def test_g10_anything_else_is_refused(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory, header: Header
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    assert (await rig.gateway.ask(headers=[header])).status == 401
    assert rig.backend.calls == []


async def test_g10_row_g13_key_in_the_query_is_no_key(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    assert (await rig.gateway.ask(target=b"/v1/x?api-key=" + KEY)).status == 401


async def test_g10_several_keys_overlap_and_rotate_without_a_restart(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"old-key\n")
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=str(path))

    async def status(key: bytes) -> int:
        return int((await rig.gateway.ask(headers=[(b"Authorization", b"Bearer " + key)])).status)

    assert (await status(b"old-key"), await status(b"new-key")) == (200, 401)
    path.write_bytes(b"  new-key  \r\n\n old-key")
    assert (await status(b"old-key"), await status(b"new-key")) == (200, 200)
    replacement = tmp_path / "next"
    replacement.write_bytes(b"new-key")
    replacement.replace(path)
    assert (await status(b"old-key"), await status(b"new-key")) == (401, 200)
    assert await status(b"") == 401


async def test_g10_row_g13_rotation_by_symlink_as_kubernetes_does_it(start: Start, tmp_path: Path) -> None:
    for name, key in (("..one", b"old-key"), ("..two", b"new-key")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").write_bytes(key)
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "key").symlink_to("..data/key")
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=str(tmp_path / "key"))
    assert (await rig.gateway.ask(headers=[(b"x-api-key", b"old-key")])).status == 200
    (tmp_path / "..tmp").symlink_to("..two")
    (tmp_path / "..tmp").replace(tmp_path / "..data")
    assert (await rig.gateway.ask(headers=[(b"x-api-key", b"old-key")])).status == 401
    assert (await rig.gateway.ask(headers=[(b"x-api-key", b"new-key")])).status == 200


async def test_g10_row_g5_bad_key_is_401_even_when_the_queue_is_full(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    rig = await start(NOCTAYA_CLIENT_API_KEY_FILE=str(path), NOCTAYA_MAX_QUEUE="1")
    rig.backend.script = hold
    async with connected(rig.gateway.port) as first:
        first.request(headers=[(b"x-api-key", KEY)])
        await rig.backend.call()
        assert (await rig.gateway.ask()).status == 401
        assert (await rig.gateway.ask(headers=[(b"x-api-key", KEY)])).status == 429


async def test_g10_row_g13_operational_endpoints_stay_open(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory))
    for path in (b"/healthz", b"/readyz", b"/metrics", b"/noctaya/queue", b"/noctaya/activations"):
        assert (await rig.gateway.ask(b"GET", path, body=None)).status == 200


@ONE_ENGINE
@pytest.mark.parametrize("content", [None, b"", b" \n\t\n"], ids=["missing", "empty", "blank"])
async def test_g10_row_g13_bad_key_file_stops_the_start(
    start: Start, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(GatewayExitError) as exited:
        await start(healthy=False, NOCTAYA_CLIENT_API_KEY_FILE=str(path))
    assert exited.value.code == 1
    assert "NOCTAYA_CLIENT_API_KEY_FILE" in str(exited.value)
