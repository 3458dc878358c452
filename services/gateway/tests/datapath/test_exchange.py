"""The exchange from outside: what goes through, in which order things are decided, what is given back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from .conftest import MakeBackend, MakeStage
from .stage import ok, post, read_head, read_request, replying, until

STREAM = b'{"stream":true}'


async def test_request_and_response_bytes_pass_unchanged(stage: MakeStage, backend: MakeBackend) -> None:
    seen: list[bytes] = []
    body = bytes(range(256)) * 300

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, content = await read_request(reader)
        seen.extend((head, content))
        writer.write(ok(body, headers=b"X-A: 1\r\nSet-Cookie: a\r\nx-b:2\r\nSet-Cookie: b\r\n"))

    gateway = await stage()
    gateway.warm(await backend(handler))
    raw = b"/v1//a/../%7Eb%2f;x=1?q=%20&q=+&"
    reply = await gateway.ask(post(body, path=raw, headers=b"X-Dup: 1\r\nAccept: */*\r\nX-Dup: 2\r\n"))
    head, content = seen
    assert content == body
    assert head.startswith(b"POST %b HTTP/1.1\r\n" % raw)
    assert [line for line in head.lower().split(b"\r\n") if line.startswith((b"x-dup", b"accept"))] == [
        b"x-dup: 1",
        b"accept: */*",
        b"x-dup: 2",
    ]
    assert b"\r\nx-forwarded-for: 127.0.0.1\r\n" in head.lower()
    assert b"connection" not in head.lower()
    top, _, rest = reply.partition(b"\r\n\r\n")
    assert rest == body
    names = [line.partition(b":")[0].lower() for line in top.split(b"\r\n")[1:]]
    assert names[:4] == [b"x-a", b"set-cookie", b"x-b", b"set-cookie"]
    assert b"x-request-id" in names


async def test_kept_connections_are_reused_last_in_first_out(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(replying(ok()))
    gateway = await stage()
    gateway.warm(server)
    for _ in range(5):
        assert (await gateway.ask(post())).endswith(b"\r\n\r\nok")
    assert server.accepted == 1
    assert gateway.metrics.responses == {200: 5}


async def test_g5_authentication_comes_before_the_body(stage: MakeStage, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("secret")
    gateway = await stage(keys=keys)
    reader, writer = await gateway.connect()
    writer.write(b"POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
    head = await read_head(reader)
    assert head.startswith(b"HTTP/1.1 401 ")
    assert gateway.admission.pending == 0


async def test_g5_slow_body_holds_no_slot(stage: MakeStage, backend: MakeBackend) -> None:
    gateway = await stage(max_queue=1)
    gateway.warm(await backend(replying(ok())))
    reader, writer = await gateway.connect()
    writer.write(b"POST /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 10\r\n\r\nabc")
    await until(lambda: gateway.budget.used == 3)
    assert gateway.admission.pending == 0
    assert (await gateway.ask(post())).endswith(b"ok")
    writer.write(b"defghij")
    assert (await asyncio.wait_for(reader.read(-1), 20)).endswith(b"ok")


async def test_g5_body_that_does_not_come_is_408_with_json(stage: MakeStage, backend: MakeBackend) -> None:
    gateway = await stage(body_timeout=0.05)
    gateway.warm(await backend(replying(ok())))
    reply = await gateway.ask(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_timeout"' in reply
    assert b"connection: close" in reply.lower()


async def test_g5_announced_body_too_large_is_413_at_once(stage: MakeStage) -> None:
    gateway = await stage(max_body=100)
    reader, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n")
    head = await read_head(reader)
    assert head.startswith(b"HTTP/1.1 413 ")


async def test_g5_chunked_body_too_large_is_413(stage: MakeStage) -> None:
    gateway = await stage(max_body=100)
    reader, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    writer.write(b"40\r\n%b\r\n" % (b"x" * 64) * 2)
    head = await read_head(reader)
    assert head.startswith(b"HTTP/1.1 413 ")


async def test_g5_total_of_held_bytes_is_bounded(stage: MakeStage) -> None:
    gateway = await stage(budget=1000)
    first = await gateway.connect()
    first[1].write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n" + b"x" * 800)
    await until(lambda: gateway.budget.used == 800)
    reply = await gateway.ask(post(b"y" * 300))
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"buffer_full"' in reply
    assert gateway.budget.used == 800


async def test_all_slots_taken_is_429_and_safe_methods_need_none(
    stage: MakeStage, backend: MakeBackend
) -> None:
    release = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, _ = await read_request(reader)
        if head.startswith(b"POST"):
            await release.wait()
        writer.write(ok())

    gateway = await stage(max_queue=1)
    gateway.warm(await backend(handler))
    busy = asyncio.create_task(gateway.ask(post()))
    await until(lambda: gateway.admission.pending == 1)
    refused = await gateway.ask(post())
    assert refused.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 5\r\n" in refused.lower()
    safe = await gateway.ask(b"GET /v1/models HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert safe.endswith(b"ok")
    release.set()
    assert (await busy).endswith(b"ok")
    assert gateway.metrics.rejections == {"queue_full": 1}


async def test_g3_safe_method_on_a_cold_service_is_answered_here(stage: MakeStage) -> None:
    gateway = await stage()
    reply = await gateway.ask(b"GET /v1/models HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert not gateway.activation.pending


async def test_cold_request_waits_and_says_so(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(replying(ok()))
    gateway = await stage()
    gateway.cool(server)
    held = asyncio.create_task(gateway.ask(post()))
    await until(lambda: len(gateway.line) == 1)
    assert gateway.activation.pending
    gateway.warm(server)
    reply = await held
    assert reply.endswith(b"ok")
    assert b"x-noctaya-cold-start: true\r\nx-noctaya-wait-seconds: " in reply.lower()


async def test_cold_request_in_reject_mode_wakes_and_is_refused(stage: MakeStage) -> None:
    gateway = await stage(reject_cold=True)
    reply = await gateway.ask(post())
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"cold_start"' in reply
    assert gateway.activation.pending


async def test_activation_timeout_is_503(stage: MakeStage) -> None:
    gateway = await stage(activation_timeout=0.05)
    reply = await gateway.ask(post())
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"activation_' in reply


async def test_cors_preflight_is_answered_before_authentication(stage: MakeStage, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("secret")
    gateway = await stage(keys=keys, cors=("*",))
    reply = await gateway.ask(
        b"OPTIONS /v1/x HTTP/1.1\r\nHost: h\r\nOrigin: http://a\r\nAccess-Control-Request-Method: POST\r\n"
        b"Connection: close\r\n\r\n"
    )
    assert reply.startswith(b"HTTP/1.1 204 ")
    assert b"access-control-allow-origin: *\r\n" in reply.lower()
    assert b"content-length" not in reply.lower()
    assert reply.lower().count(b"access-control-allow-origin") == 1


async def test_backend_that_cannot_be_reached_is_502(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(replying(ok()))
    await server.stop()
    gateway = await stage(reject_cold=True)
    gateway.warm(server)
    reply = await gateway.ask(post())
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert gateway.metrics.upstream_errors == {"connect": 1}


async def test_g7_connect_failure_moves_the_request_to_another_backend(
    stage: MakeStage, backend: MakeBackend
) -> None:
    dead, alive = await backend(replying(ok())), await backend(replying(ok()))
    await dead.stop()
    gateway = await stage()
    gateway.warm(dead, alive)
    for _ in range(3):
        assert (await gateway.ask(post())).endswith(b"ok")


async def test_request_that_cannot_connect_anywhere_stands_in_line_again(
    stage: MakeStage, backend: MakeBackend
) -> None:
    dead = await backend(replying(ok()))
    await dead.stop()
    gateway = await stage()
    gateway.warm(dead)
    held = asyncio.create_task(gateway.ask(post()))
    await until(lambda: len(gateway.line) == 1)
    gateway.warm(await backend(replying(ok())))
    assert (await held).endswith(b"ok")
