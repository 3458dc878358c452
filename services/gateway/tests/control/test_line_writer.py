"""Lines to a descriptor that is slow, full or closed: the loop never waits, nothing is lost uncounted."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import threading
import time

import pytest
from noctaya_gateway.line_writer import LineWriter

PATIENCE = 20.0


async def counted(writer: LineWriter, lines: int) -> None:
    """Wait until so many lines were written or failed."""
    async with asyncio.timeout(PATIENCE):
        while writer.written + writer.failed < lines:  # noqa: ASYNC110  a thread counts
            await asyncio.sleep(0.005)


def read_all(descriptor: int) -> bytes:
    data = b""
    while piece := os.read(descriptor, 65536):
        data += piece
    return data


async def test_lines_arrive_whole_in_order_and_closing_brings_the_last() -> None:
    read, write = os.pipe()
    writer = LineWriter(write, loop=asyncio.get_running_loop())
    lines = [b"line %d\n" % number for number in range(500)]
    for line in lines[:300]:
        writer.put(line)
    await counted(writer, 300)
    for line in lines[300:]:
        writer.put(line)
    await writer.close()
    os.close(write)
    assert read_all(read) == b"".join(lines)
    os.close(read)
    assert (writer.accepted, writer.written, writer.dropped, writer.failed) == (500, 500, 0, 0)
    writer.put(b"too late\n")
    assert writer.dropped == 1


async def test_a_reader_that_does_not_read_costs_lines_and_no_time() -> None:
    read, write = os.pipe()
    limit = 300_000
    writer = LineWriter(write, loop=asyncio.get_running_loop(), limit=limit)
    line = b"x" * 999 + b"\n"
    for _ in range(1000):
        writer.put(line)
    await asyncio.sleep(0.2)  # handed over; the pipe takes 64 KiB of it
    began = time.monotonic()
    for _ in range(1000):
        writer.put(line)
    await writer.close(timeout=0.05)
    assert time.monotonic() - began < 5, "a blocked write does not hold up the end"
    assert writer.accepted <= limit // len(line) + 64
    assert writer.dropped == 2000 - writer.accepted
    reader = threading.Thread(target=read_all, args=(read,))
    reader.start()
    await counted(writer, writer.accepted)
    os.close(write)
    await asyncio.to_thread(reader.join, PATIENCE)
    os.close(read)
    assert writer.written == writer.accepted


async def test_a_full_disk_is_said_once_and_lines_come_again_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    out: list[bytes] = []
    room = 25

    def write(_: int, data: bytes | memoryview) -> int:
        nonlocal room
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(data[:room])
        room -= len(part)
        out.append(part)
        return len(part)

    caplog.set_level(logging.WARNING)
    writer = LineWriter(-1, loop=asyncio.get_running_loop(), write=write)
    for number in range(5):
        writer.put(b"line %04d\n" % number)
    await counted(writer, 5)
    assert (writer.written, writer.failed) == (2, 3)
    writer.put(b"line lost\n")
    await counted(writer, 6)
    room = 1000
    writer.put(b"line after\n")
    await counted(writer, 7)
    assert b"".join(out) == b"line 0000\nline 0001\nline \nline after\n", "the torn line is ended first"
    assert (writer.written, writer.failed) == (3, 4)
    assert [record.message for record in caplog.records] == ["access log can't be written"]
    await writer.close()


async def test_a_closed_pipe_loses_lines_and_breaks_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    writer = LineWriter(write, loop=asyncio.get_running_loop())
    writer.put(b"nobody reads this\n")
    await counted(writer, 1)
    assert (writer.written, writer.failed) == (0, 1)
    await writer.close()
    os.close(write)


async def test_a_descriptor_that_does_not_block_is_waited_for() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    writer = LineWriter(write, loop=asyncio.get_running_loop())
    line = b"y" * 999 + b"\n"
    for _ in range(200):
        writer.put(line)
    reader = asyncio.create_task(asyncio.to_thread(read_all, read))
    await counted(writer, 200)
    os.close(write)
    assert await asyncio.wait_for(reader, PATIENCE) == line * 200
    os.close(read)
    await writer.close()
