"""Go's ReverseProxy with a tuned transport, built once per Go version and source into the user's cache."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from pathlib import Path

from ..children import ChildError, free_port
from ..lab import Lab
from .peer import Peer

SOURCE = Path(__file__).with_name("go") / "main.go"
BUILD_SECONDS = 240.0


def cache_directory(version: str, source: bytes) -> Path:
    """Where the binary of this compiler and this source lives."""
    key = f"{version.split()[2]}-{hashlib.sha256(source).hexdigest()[:12]}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "noctaya" / "bench" / key


def build(go: str) -> Path:
    """The binary, built when it is not in the cache; ChildError with the compiler's words otherwise."""
    version = subprocess.run([go, "version"], check=True, capture_output=True, text=True).stdout
    binary = cache_directory(version, SOURCE.read_bytes()) / "reverse-proxy"
    if not binary.exists():
        binary.parent.mkdir(parents=True, exist_ok=True)
        partial = binary.with_suffix(f".{os.getpid()}")
        argv = [go, "build", "-o", str(partial), str(SOURCE)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=BUILD_SECONDS)
        if done.returncode != 0:
            raise ChildError(f"go build failed: {done.stderr[-500:]}")
        partial.rename(binary)
    return binary


async def start_go_proxy(lab: Lab, upstream: int) -> Peer:
    """Start the Go proxy before the port `upstream`."""
    if lab.tools.go is None:
        raise ChildError("go is not installed")
    binary = await asyncio.to_thread(build, lab.tools.go)
    port = free_port()
    child = await lab.start("go", [str(binary), f"127.0.0.1:{port}", f"http://127.0.0.1:{upstream}"])
    await child.listening(port)
    return Peer(name="go", port=port, pids=(child.pid,))
