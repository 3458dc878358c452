from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from noctaya_gateway import discovery as discovery_module
from noctaya_gateway.balancer import Address, Balancer
from noctaya_gateway.discovery import Discovery, Endpoints, parse_endpoints, read_endpoints, resolve

from .servers import until

SERVICE = Address("model-backend", 80)
A = Address("10.0.0.1", 8000)
B = Address("10.0.0.2", 8000)
NAME = Address("model-pods", 8000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Endpoints()),
        ("10.0.0.1:8000", Endpoints(static=(A,))),
        (" 10.0.0.1:8000 ,10.0.0.2:8000,10.0.0.1:8000", Endpoints(static=(A, B))),
        ("[fd00::1]:80", Endpoints(static=(Address("fd00::1", 80),))),
        ("dns://model-pods:8000", Endpoints(dns=NAME)),
        ("file:///run/endpoints", Endpoints(file=Path("/run/endpoints"))),
    ],
)
def test_endpoints_are_a_list_a_name_or_a_file(text: str, expected: Endpoints) -> None:
    assert parse_endpoints(text) == expected


@pytest.mark.parametrize(
    "text", ["host", "host:", ":80", "host:0", "host:65536", "host:http", "fd00::1:80", "dns://", "file://x"]
)
def test_what_is_neither_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|brackets"):
        parse_endpoints(text)


class Names:
    """A resolver whose answer is set by the test; an OSError is raised."""

    def __init__(self) -> None:
        self.answer: Sequence[Address] | OSError = ()
        self.questions: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.questions.append((host, port))
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


class Rig:
    def __init__(
        self, endpoints: Endpoints, *, service: Address = SERVICE, search: Sequence[str] = ()
    ) -> None:
        self.names = Names()
        self.balancer = Balancer()
        self.changes = 0
        self.urgent = False
        self.discovery = Discovery(
            endpoints,
            service=service,
            balancer=self.balancer,
            on_change=self._changed,
            is_urgent=lambda: self.urgent,
            search=search,
            resolver=self.names,
        )

    def _changed(self) -> None:
        self.changes += 1

    def known(self) -> tuple[Address, ...]:
        return self.balancer.addresses

    async def look_again(self) -> None:
        asked = len(self.names.questions)
        self.discovery.wake()
        await until(lambda: len(self.names.questions) > asked)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def rig(text: str, *, service: Address = SERVICE, search: Sequence[str] = ()) -> AsyncIterator[Rig]:
    made = Rig(parse_endpoints(text), service=service, search=search)
    made.discovery.start()
    try:
        yield made
    finally:
        await made.discovery.close()


async def test_without_endpoints_the_url_is_the_only_address() -> None:
    async with rig("") as found:
        assert found.known() == (SERVICE,)
        assert found.changes == 1


async def test_g7_a_static_list_replaces_the_url() -> None:
    async with rig("10.0.0.1:8000,10.0.0.2:8000") as found:
        assert found.known() == (A, B)


async def test_g7_a_name_is_followed_and_the_service_stays_as_backup() -> None:
    async with rig("dns://model-pods:8000") as found:
        assert found.known() == (SERVICE,)
        found.names.answer = (A,)
        await found.look_again()
        assert found.known() == (A, SERVICE)
        found.names.answer = (B, A)
        await found.look_again()
        assert set(found.known()) == {A, B, SERVICE}
        found.names.answer = (B,)
        await found.look_again()
        assert found.known() == (B, SERVICE)
        found.names.answer = ()
        await found.look_again()
        assert found.known() == (SERVICE,)
        assert set(found.names.questions) == {("model-pods", 8000)}


async def test_an_order_that_changes_is_no_change() -> None:
    async with rig("dns://model-pods:8000") as found:
        found.names.answer = (A, B)
        await found.look_again()
        changes = found.changes
        found.names.answer = (B, A)
        await found.look_again()
        assert found.changes == changes


@pytest.mark.parametrize("error", [OSError("no answer"), socket.gaierror(socket.EAI_AGAIN, "again")])
async def test_a_name_server_that_does_not_answer_changes_nothing(
    error: OSError, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig("dns://model-pods:8000") as found:
        found.names.answer = (A,)
        await found.look_again()
        found.names.answer = error
        await found.look_again()
        await found.look_again()
        assert found.known() == (A, SERVICE)
        assert caplog.text.count("can't be resolved") == 1
        found.names.answer = (B,)
        await found.look_again()
        assert found.known() == (B, SERVICE)


async def test_a_failed_connect_makes_it_look_again() -> None:
    async with rig("dns://model-pods:8000") as found:
        found.names.answer = (A,)
        await found.look_again()
        found.balancer.mark(A, ready=True)
        asked = len(found.names.questions)
        found.balancer.report_unreachable(A)
        await until(lambda: len(found.names.questions) > asked)


async def test_an_unknown_name_has_no_address_and_a_known_one_has_its_port() -> None:
    assert Address("127.0.0.1", 81) in await resolve("localhost", 81)
    assert await resolve("noctaya.invalid", 80) == ()


async def test_a_name_that_can_be_no_host_name_is_not_fatal(caplog: pytest.LogCaptureFixture) -> None:
    balancer = Balancer()
    found = Discovery(
        Endpoints(dns=Address("x" * 70 + ".example", 80)),
        service=SERVICE,
        balancer=balancer,
        on_change=lambda: None,
        is_urgent=lambda: False,
    )
    found.start()
    await until(lambda: "can't be resolved" in caplog.text)
    await found.close()
    assert balancer.addresses == (SERVICE,)


async def test_a_file_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery_module, "FILE_INTERVAL", 0.005)
    path = tmp_path / "endpoints"

    def write(text: str) -> None:
        new = tmp_path / "new"
        new.write_text(text)
        new.replace(path)

    async with rig(f"file://{path}") as found:
        assert found.known() == ()
        write("10.0.0.1:8000\n10.0.0.2:8000\n")
        await until(lambda: found.known() == (A, B))
        write("10.0.0.2:8000\n")
        await until(lambda: found.known() == (B,))
        write("not an address\n")
        await asyncio.sleep(0.05)
        assert found.known() == (B,)
        path.unlink()
        await until(lambda: found.known() == ())


def test_a_file_that_is_missing_names_no_backend(tmp_path: Path) -> None:
    assert read_endpoints(tmp_path / "none") == ()


async def test_g7_a_doubt_about_a_ready_address_makes_it_look_again() -> None:
    async with rig("dns://model-pods:8000") as found:
        found.names.answer = (A,)
        await found.look_again()
        found.names.answer = ()
        found.balancer.doubt()
        await until(lambda: found.known() == (SERVICE,))


async def test_g7_the_service_is_not_believed_ready_when_its_last_pod_has_left() -> None:
    async with rig("dns://model-pods:8000") as found:
        found.names.answer = (A,)
        await found.look_again()
        found.balancer.mark(A, ready=True)
        found.balancer.mark(SERVICE, ready=True)
        cold: list[bool] = []
        found.balancer.subscribe(cold=lambda: cold.append(True))
        found.names.answer = ()
        await found.look_again()
        assert cold == [True]
        assert not found.balancer.ready
        found.balancer.mark(SERVICE, ready=True)  # a probe says otherwise: DNS was behind
        await found.look_again()
        assert found.balancer.ready


async def test_names_of_services_are_asked_for_once_and_not_in_every_search_domain() -> None:
    search = ("prod.svc.cluster.local", "svc.cluster.local", "cluster.local")
    service = Address("chat-backend.prod.svc", 80)
    async with rig("dns://chat-pods.prod.svc:8000", service=service, search=search) as found:
        await until(lambda: bool(found.names.questions))
        assert found.names.questions[0] == ("chat-pods.prod.svc.cluster.local.", 8000)
        assert found.known() == (Address("chat-backend.prod.svc.cluster.local.", 80),)
