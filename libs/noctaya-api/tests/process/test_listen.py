import asyncio
import socket

import pytest
from noctaya_api.process.listen import bind_sockets, parse_listen


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:65535", ("localhost", 65535)),
        (" :9090 ", ("", 9090)),
    ],
)
def test_go_listen_addresses_are_understood(text: str, parsed: tuple[str, int]) -> None:
    assert parse_listen(text) == parsed


@pytest.mark.parametrize(
    "text", ["", "8080", "localhost", ":", ":http", ":65536", ":-1", "::1:80", "[::1:80", ":٣", "a:8 0"]
)
def test_a_bad_listen_address_is_refused_with_itself_in_the_message(text: str) -> None:
    with pytest.raises(ValueError, match=r"'.*'"):
        parse_listen(text)


async def test_an_empty_host_listens_on_ipv4_and_ipv6_with_one_port() -> None:
    sockets = await bind_sockets("", 0)
    try:
        assert len({bound.getsockname()[1] for bound in sockets}) == 1
        port = sockets[0].getsockname()[1]
        for bound in sockets:
            host = "127.0.0.1" if bound.family == socket.AF_INET else "::1"
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            await writer.wait_closed()
    finally:
        for bound in sockets:
            bound.close()


async def test_a_taken_port_is_an_oserror_and_leaves_nothing_open() -> None:
    taken = await bind_sockets("127.0.0.1", 0)
    try:
        port = taken[0].getsockname()[1]
        for host in ("127.0.0.1", ""):
            with pytest.raises(OSError, match="in use"):
                await bind_sockets(host, port)
    finally:
        for bound in taken:
            bound.close()


async def test_a_host_name_is_resolved() -> None:
    bound = (await bind_sockets("localhost", 0))[0]
    assert bound.getsockname()[0] in {"127.0.0.1", "::1"}
    bound.close()
