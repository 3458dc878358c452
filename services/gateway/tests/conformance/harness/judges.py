"""SDK judges of other languages: built once per pinned version into the user's cache, run as processes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

SDK = Path(__file__).parents[1] / "sdk"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noctaya" / "judges"
BUILD_WITHIN = 400.0
"""Seconds a first build may take; a warm cache takes none."""


class JudgeError(Exception):
    """A judge could not be built or printed no result."""


async def run(command: Sequence[str | Path], *, cwd: Path, within: float, **env: str) -> str:
    """Standard output of a program that must succeed."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=cwd,
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise JudgeError(
            f"{command[0]} ended with {process.returncode}: {err.decode(errors='replace')[-2000:]}"
        )
    return out.decode()


def digest(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


@contextlib.asynccontextmanager
async def locked(place: Path) -> AsyncIterator[None]:
    """One builder at a time, across processes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as file:
        await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
        yield


async def build_go(module: str) -> Path:
    """The judge binary of one module file: `go.mod` (current SDK) or `legacy.mod`."""
    source = SDK / "go"
    sums = module.replace(".mod", ".sum")
    binary = CACHE / f"go-{digest(source / 'main.go', source / module, source / sums)}"
    async with locked(binary):
        if not binary.exists():
            built = binary.with_suffix(".new")
            await run(
                ["go", "build", "-mod=readonly", f"-modfile={module}", "-o", built, "."],
                cwd=source,
                within=BUILD_WITHIN,
            )
            built.replace(binary)
    return binary


async def build_node() -> Path:
    """The `node_modules` directory with the pinned SDK."""
    source = SDK / "node"
    place = CACHE / f"node-{digest(source / 'package.json', source / 'package-lock.json')}"
    async with locked(place):
        if not place.exists():
            new = place.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, new)
            await run(["npm", "ci", "--ignore-scripts"], cwd=new, within=BUILD_WITHIN)
            new.replace(place)
    return place / "node_modules"


class GoJudge:
    """openai-go at one version."""

    def __init__(self, module: str) -> None:
        self._module = module

    async def ask(self, port: int, scenario: str, *, key: str = "none") -> dict[str, Any]:
        binary = await build_go(self._module)
        out = await run([binary, f"http://127.0.0.1:{port}/v1", key, scenario], cwd=SDK / "go", within=60)
        value: dict[str, Any] = json.loads(out)
        return value


class NodeJudge:
    """openai-node."""

    async def ask(self, port: int, scenario: str, *, key: str = "none") -> dict[str, Any]:
        modules = await build_node()
        command = ["node", "judge.cjs", f"http://127.0.0.1:{port}/v1", key, scenario]
        value: dict[str, Any] = json.loads(
            await run(command, cwd=SDK / "node", within=60, NODE_PATH=str(modules))
        )
        return value
