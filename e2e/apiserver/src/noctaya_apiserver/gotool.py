"""The `go` command: found, run, and its failures told in its own words."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

GO_DEFAULT: Final = Path("/usr/local/go/bin/go")  # where go.dev's archive puts it, often not on PATH
OLDEST: Final = (1, 24)
"""What the go.mod of Kubernetes 1.34 asks for."""


class BuildError(Exception):
    """A part could not be built; the message says what to do or what the compiler said."""


class Go:
    """A Go toolchain that is new enough. Raises BuildError when there is none."""

    def __init__(self) -> None:
        found = shutil.which("go") or (str(GO_DEFAULT) if GO_DEFAULT.exists() else None)
        if found is None:
            raise BuildError(
                "Go is not installed. The API server for tests is built from its Go modules, once: "
                f"install Go {OLDEST[0]}.{OLDEST[1]} or newer (https://go.dev/dl) and try again"
            )
        self._go = found
        version = self._run("env", "GOVERSION").strip()
        match = re.match(r"go(\d+)\.(\d+)", version)
        if match and (int(match[1]), int(match[2])) < OLDEST:
            raise BuildError(f"{found} is {version}; Go {OLDEST[0]}.{OLDEST[1]} or newer is needed")

    def download(self, module: str) -> dict[str, str]:
        """What `go mod download -json` says of `path@version`: its `GoMod` and `Dir`, for two."""
        text = self._run("mod", "download", "-json", module, check=False)
        try:
            found: dict[str, str] = json.loads(text)
        except ValueError as error:
            raise BuildError(f"go mod download {module}: {text.strip()}") from error
        if "Error" in found:
            raise BuildError(f"go mod download {module}: {found['Error']}")
        return found

    def tidy(self, folder: Path) -> None:
        """Complete go.mod and write go.sum."""
        self._run("mod", "tidy", cwd=folder)

    def packages(self, package: str, *, cwd: Path) -> int:
        """How many packages a program is made of."""
        return len(self._run("list", "-deps", package, cwd=cwd).splitlines())

    def build(self, package: str, target: Path, *, cwd: Path, ldflags: str) -> Iterator[str]:
        """Build a static program; yields each package compiled, those in Go's own cache excepted."""
        argv = [self._go, "build", "-v", "-buildvcs=false", "-ldflags", ldflags, "-o", str(target), package]
        with subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, "CGO_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            said = []
            try:
                for line in process.stderr:
                    said.append(line)
                    yield line.strip()
            except BaseException:  # interrupted, or nobody asks any more
                process.terminate()
                raise
            if process.wait() != 0:
                raise BuildError(f"go build {package}: {''.join(said[-20:]).strip()}")

    def _run(self, *arguments: str, cwd: Path | None = None, check: bool = True) -> str:
        done = subprocess.run(
            [self._go, *arguments],
            cwd=cwd,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if check and done.returncode != 0:
            raise BuildError(f"go {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
        return done.stdout or done.stderr
