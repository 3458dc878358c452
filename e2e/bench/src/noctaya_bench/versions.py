"""What was measured with: versions of everything that can move a figure."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from .tools import Tools

PACKAGES = (
    *("noctaya-gateway", "uvicorn", "httptools", "uvloop", "fastapi", "httpx", "grpcio"),
    *("noctaya-operator", "kubernetes", "aiohttp"),
    *("noctaya-prewarm", "huggingface_hub"),
)


def collect_versions(tools: Tools) -> dict[str, str]:
    """Name to version, in the order they are shown; tools that are not installed are said to be so."""
    found = {
        "machine": f"{os.cpu_count()} cores, {_processor()}",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    found |= {name: version(name) for name in PACKAGES}
    found["nginx"] = _first_line(tools.nginx, "-v").removeprefix("nginx version: ")
    found["wrk"] = " ".join(_first_line(tools.wrk, "-v").split()[:2])
    found["go"] = _first_line(tools.go, "version").removeprefix("go version ")
    return found


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(program: str | None, *options: str) -> str:
    if program is None:
        return "not installed"
    argv: Sequence[str] = (program, *options)
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=10)
    return (done.stdout + done.stderr).partition("\n")[0]
