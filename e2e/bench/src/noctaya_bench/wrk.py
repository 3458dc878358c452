"""JSON load by wrk: a closed loop of connections posting the same chat request, bounded in time.

wrk reports through the `done` hook of its Lua script: one line of JSON with exact counts and microseconds.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from .children import ChildError
from .payloads import API_KEY, CHAT_PATH, chat_body

MARK = "BENCH "
SCRIPT = """\
wrk.method = "POST"
wrk.path = "{path}"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
wrk.body = '{body}'
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '{mark}{{"requests":%d,"microseconds":%d,"errors":%d,"p50":%.1f,"p99":%.1f}}\\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True, slots=True)
class WrkResult:
    """Counts of one bounded run; latencies in milliseconds."""

    requests: int
    errors: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


def write_script(directory: Path) -> Path:
    """The Lua script that posts the bench's chat request."""
    script = directory / "chat.lua"
    body = chat_body(stream=False).decode()
    script.write_text(SCRIPT.format(path=CHAT_PATH, key=API_KEY, body=body, mark=MARK))
    return script


def parse_wrk(output: str) -> WrkResult:
    """Find and read the line of the `done` hook; ValueError when wrk printed none."""
    for line in output.splitlines():
        if line.startswith(MARK):
            read = json.loads(line.removeprefix(MARK))
            return WrkResult(
                requests=read["requests"],
                errors=read["errors"],
                seconds=read["microseconds"] / 1e6,
                p50_ms=read["p50"] / 1000,
                p99_ms=read["p99"] / 1000,
            )
    raise ValueError(f"wrk printed no result line: {output[-500:]}")


async def run_wrk(wrk: str, script: Path, *, port: int, connections: int, seconds: int) -> WrkResult:
    """Load the port for `seconds` from one wrk thread."""
    argv = [wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script)]
    process = await asyncio.create_subprocess_exec(
        *argv,
        f"http://127.0.0.1:{port}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), seconds + 20)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise ChildError(f"wrk ended with {process.returncode}: {output[-500:].decode(errors='replace')}")
    return parse_wrk(output.decode())
