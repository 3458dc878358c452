"""The `go` command: found, run, and its failures told in its own words."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

GO_DEFAULT: Final = Path("/usr/local/go/bin/go")  # where go.dev's archive puts it, often not on PATH
OLDEST: Final = (1, 26)
"""What the go.mod of KEDA asks for, the most demanding of all."""
TICK_SECONDS: Final = 1.0


class BuildError(Exception):
    """A part could not be built; the message says what to do or what the compiler said."""


class Go:
    """A Go toolchain that is new enough. Raises BuildError when there is none."""

    def __init__(self) -> None:
        found = shutil.which("go") or (str(GO_DEFAULT) if GO_DEFAULT.exists() else None)
        if found is None:
            raise BuildError(
                "Go is not installed. What tests run of Kubernetes and KEDA is built from Go modules, once: "
                f"install Go {OLDEST[0]}.{OLDEST[1]} or newer (https://go.dev/dl) and try again"
            )
        self._go = found
        version = self._run("env", "GOVERSION").strip()
        match = re.match(r"go(\d+)\.(\d+)", version)
        # With GOTOOLCHAIN=auto an older one, back to 1.21, fetches what a go.mod asks for.
        if match and (int(match[1]), int(match[2])) < OLDEST and not self._updates_itself(match):
            raise BuildError(
                f"{found} is {version}; Go {OLDEST[0]}.{OLDEST[1]} or newer is needed (https://go.dev/dl), "
                "or GOTOOLCHAIN=auto with Go 1.21 or newer"
            )

    def _updates_itself(self, version: re.Match[str]) -> bool:
        new_enough = (int(version[1]), int(version[2])) >= (1, 21)
        return new_enough and "auto" in self._run("env", "GOTOOLCHAIN")

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
        """How many packages a program is made of. Downloads their modules, checked against go.sum."""
        return len(self._run("list", "-mod=readonly", "-deps", package, cwd=cwd).splitlines())

    def made_of(self, binary: Path) -> str:
        """The build information in a program: modules, versions, settings."""
        return self._run("version", "-m", str(binary))

    def build(self, package: str, target: Path, *, cwd: Path, ldflags: str) -> Iterator[int]:
        """Build a static program from the modules that go.mod and go.sum say, and no others.

        Yields, about once a second and at every package, how many packages were compiled so far; those that
        are in Go's own cache are not counted.
        """
        argv = [self._go, "build", "-v", "-mod=readonly", "-buildvcs=false", "-ldflags", ldflags]
        with subprocess.Popen(
            [*argv, "-o", str(target), package], cwd=cwd, stderr=subprocess.PIPE, **self._how()
        ) as process:
            said: list[str] = []
            lines = _lines_of(process)
            try:
                while True:
                    try:
                        line = lines.get(timeout=TICK_SECONDS)
                    except queue.Empty:
                        yield len(said)
                        continue
                    if line is None:
                        break
                    said.append(line)
                    yield len(said)
            except BaseException:  # interrupted, or nobody asks any more
                process.terminate()
                raise
            if process.wait() != 0:
                raise BuildError(f"go build {package}: {''.join(said[-20:]).strip()}")

    def _run(self, *arguments: str, cwd: Path | None = None, check: bool = True) -> str:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [self._go, *arguments], cwd=cwd, check=False, stderr=subprocess.PIPE, **self._how(subprocess.PIPE)
        )
        if check and done.returncode != 0:
            raise BuildError(f"go {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
        return done.stdout or done.stderr

    @staticmethod
    def _how(stdout: int = subprocess.DEVNULL) -> dict[str, Any]:
        """Static programs for this machine, whatever the caller builds else, on the CPUs that we may use."""
        env = {key: value for key, value in os.environ.items() if key not in {"GOOS", "GOARCH"}}
        env |= {"CGO_ENABLED": "0", "GOWORK": "off"}
        if sys.platform == "linux":
            env.setdefault("GOMAXPROCS", str(len(os.sched_getaffinity(0))))
        return {"env": env, "stdin": subprocess.DEVNULL, "stdout": stdout, "text": True}


def _lines_of(process: subprocess.Popen[str]) -> queue.SimpleQueue[str | None]:
    """What it writes to stderr, line by line; None at the end."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, name="go-build", daemon=True).start()
    return lines
