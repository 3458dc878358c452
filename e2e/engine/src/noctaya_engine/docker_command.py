"""The `docker` command: the right one of several, run with only the settings it is given."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from noctaya_engine.errors import BuildFailed, EngineError, EngineUnavailable

USUAL_PLACES: Final = ("/usr/bin/docker", "/usr/local/bin/docker")
LAST_LINES: Final = 25


def find_command(candidates: Iterable[str] | None = None) -> str:
    """A docker command that can build with BuildKit secrets; another one earlier on PATH may lack that.

    Raises:
        EngineUnavailable: there is none.
    """
    if candidates is None:
        on_path = shutil.which("docker")
        candidates = [*([on_path] if on_path else []), *USUAL_PLACES]
    tried = list(dict.fromkeys(candidates))
    for candidate in tried:
        if Path(candidate).exists() and _knows_secrets(candidate):
            return candidate
    raise EngineUnavailable(
        f"no docker command here builds with BuildKit (looked at {', '.join(tried) or 'PATH'}); "
        "on Debian: apt-get install docker.io, elsewhere the buildx plugin"
    )


def _knows_secrets(command: str) -> bool:
    shown = subprocess.run(
        [command, "build", "--help"],
        env={**os.environ, "DOCKER_BUILDKIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.returncode == 0 and "--secret" in shown.stdout


class DockerCommand:
    """Runs docker against one engine.

    Args:
        program: path of the command.
        env: variables over our own; they name the engine.
    """

    def __init__(self, program: str, *, env: Mapping[str, str]) -> None:
        self._program = program
        self._env = dict(env)

    @property
    def environment(self) -> dict[str, str]:
        """What makes any Docker client talk to this engine."""
        return dict(self._env)

    def __call__(self, *arguments: str | Path, stdin: Path | None = None) -> str:
        """Run and return what it printed.

        Raises:
            EngineError: it failed; the message ends with what it said.
        """
        done = self._run(arguments, stdin=stdin)
        if done.returncode:
            raise EngineError(f"docker {arguments[0]} failed: {last_words(done.stderr)}")
        return done.stdout.decode().strip()

    def succeeds(self, *arguments: str | Path) -> bool:
        """Whether it ended with 0; for questions such as whether an image is there."""
        return self._run(arguments, stdin=None).returncode == 0

    def build(self, *arguments: str | Path, context: Path, env: Mapping[str, str] | None = None) -> None:
        """`docker build` from the tar `context`, with more variables in its environment.

        Raises:
            BuildFailed: with the end of the builder's own output.
        """
        done = self._run(("build", *arguments, "-"), stdin=context, env=env)
        if done.returncode:
            raise BuildFailed(f"the build failed:\n{last_words(done.stderr + done.stdout)}")

    def _run(
        self, arguments: Iterable[str | Path], *, stdin: Path | None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        ours = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain", **self._env}
        merged = {**os.environ, **ours, **(env or {})}
        with Path(stdin or os.devnull).open("rb") as source:
            return subprocess.run(
                [self._program, *map(str, arguments)],
                env=merged,
                stdin=source,
                capture_output=True,
                check=False,
            )


def last_words(output: bytes) -> str:
    """The end of what a program said."""
    return "\n".join(output.decode(errors="replace").strip().splitlines()[-LAST_LINES:])
