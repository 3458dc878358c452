"""An engine that builds, loads, saves and runs images: a private one of ours, or the one that is there.

The private engine is started by its first user, joined by others, and ends itself when the last one is
gone. It needs root on Linux and nothing else beforehand. `system` is whatever `docker` talks to; it must
reach an image registry for the base images.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, Literal, Self

from noctaya_parts.debian import PackagesMissing, ensure_packages
from noctaya_parts.locking import in_use, locked, shared

from noctaya_engine.docker_command import DockerCommand, find_command, last_words
from noctaya_engine.errors import EngineUnavailable
from noctaya_engine.layout import MAX_SOCKET_PATH, Layout
from noctaya_engine.places import engine_folder

VARIABLE: Final = "NOCTAYA_ENGINE"
Kind = Literal["private", "system"]
Report = Callable[[str], None]

MAX_VARIABLE: Final = 100_000
"""Bytes; Linux takes 131071. Only a bundle of certification authorities, which is no secret, is larger."""
START_SECONDS: Final = 180.0
PACKAGES: Final = ("containerd", "runc", "docker.io", "debootstrap")
SYSTEM_FOLDERS: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
KEPT_ENVIRONMENT: Final = (
    "LANG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)


class Engine:
    """A running engine. Get one by `Engine.running`."""

    def __init__(self, docker: DockerCommand, *, kind: Kind, report: Report) -> None:
        self.docker = docker
        self.kind: Kind = kind
        self._report = report

    @classmethod
    @contextmanager
    def running(
        cls, *, kind: Kind | None = None, report: Report = print, folder: Path | None = None
    ) -> Iterator[Self]:
        """Start or join an engine for the time of a `with` block.

        Args:
            kind: `private` or `system`; by default as `choose_kind` says.
            report: gets lines of progress.
            folder: of the private engine, instead of the cache's own place.

        Raises:
            EngineUnavailable: it can't run here; the message says what is missing.
        """
        kind = kind or choose_kind()
        if kind == "system":
            docker = DockerCommand(find_command(), env={})
            if not docker.succeeds("version"):
                raise EngineUnavailable(
                    "the machine's own Docker does not answer; is it running, may you use it?"
                )
            yield cls(docker, kind=kind, report=report)
            return
        layout = Layout(folder or engine_folder())
        check_can_run(layout)
        _ensure_programs(report)
        layout.folder.mkdir(parents=True, exist_ok=True)
        with shared(layout.users_lock):
            _start_or_join(layout, report)
            yield cls(DockerCommand(find_command(), env=environment(layout)), kind=kind, report=report)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make any Docker client talk to this engine."""
        return self.docker.environment

    def has(self, reference: str) -> bool:
        """Whether an image is there."""
        return self.docker.succeeds("image", "inspect", reference)

    def import_root(self, tar: Path, reference: str) -> None:
        """Make an image of the tar of a root file system, unless it is there."""
        if not self.has(reference):
            self._report(f"loading {reference}")
            self.docker("import", "-", reference, stdin=tar)

    def build_context(
        self,
        context: Path,
        *,
        dockerfile: str,
        reference: str,
        build_args: Mapping[str, str],
        secrets: Mapping[str, bytes],
        target: str = "",
        fresh: bool = False,
    ) -> None:
        """Build the tar `context`; `secrets` exist only while a step runs that asks for them.

        `target` names a stage of the Dockerfile, the last one by default; `fresh` does every step again.

        Raises:
            BuildFailed: with the builder's last words.
        """
        with tempfile.TemporaryDirectory(prefix="noctaya-build-") as work:
            arguments = ["--network=host", f"--file={dockerfile}", f"--tag={reference}"]
            if target:
                arguments.append(f"--target={target}")
            if fresh:
                arguments.append("--no-cache")
            for name, value in build_args.items():
                arguments += ["--build-arg", f"{name}={value}"]
            variables: dict[str, str] = {}
            for name, content in secrets.items():
                if len(content) < MAX_VARIABLE:  # credentials: nothing is left on disk when we are killed
                    variables[f"NOCTAYA_SECRET_{name.upper()}"] = content.decode()
                    arguments += ["--secret", f"id={name},env=NOCTAYA_SECRET_{name.upper()}"]
                else:
                    file = Path(work) / name
                    file.touch(mode=0o600)
                    file.write_bytes(content)
                    arguments += ["--secret", f"id={name},src={file}"]
            self.docker.build(*arguments, context=context, env=variables)

    def save(self, reference: str, path: Path) -> None:
        """Write an image as a docker-archive tar; complete or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            self.docker("save", f"--output={partial}", reference)
            partial.chmod(0o644)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def load(self, path: Path) -> None:
        """Load a docker-archive tar."""
        self.docker("load", f"--input={path}")


def choose_kind(
    *, env: Mapping[str, str] = os.environ, private_can_run: Callable[[], bool] | None = None
) -> Kind:
    """`NOCTAYA_ENGINE` if it says so; else the private engine where it can run, which is Linux as root.

    Raises:
        EngineUnavailable: the variable names no kind.
    """
    asked = env.get(VARIABLE, "")
    if asked in {"private", "system"}:
        return "private" if asked == "private" else "system"
    if asked:
        raise EngineUnavailable(f"{VARIABLE} must be private or system, not {asked!r}")
    can_run = private_can_run or (lambda: sys.platform == "linux" and os.geteuid() == 0)
    return "private" if can_run() else "system"


def check_can_run(layout: Layout) -> None:
    """Raises EngineUnavailable when no private engine can run on this machine."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise EngineUnavailable(
            "the private engine needs Linux and root; `--engine system` uses the machine's own Docker"
        )
    if len(os.fsencode(layout.docker_socket)) > MAX_SOCKET_PATH:
        raise EngineUnavailable(
            f"the path {layout.docker_socket} is too long for a socket; "
            "set XDG_CACHE_HOME to a folder with a shorter one"
        )


def answers(docker_socket: Path) -> bool:
    """Whether an engine answers there."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(str(docker_socket))
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in client.recv(64)
        except OSError:
            return False


def _ensure_programs(report: Report) -> None:
    try:
        ensure_packages(*PACKAGES, report=report)
    except PackagesMissing as error:
        raise EngineUnavailable(f"the private engine lacks programs: {error}") from error


def _start_or_join(layout: Layout, report: Report) -> None:
    with locked(layout.start_lock, waiting=lambda: report("another run starts the engine, waiting for it")):
        if answers(layout.docker_socket):
            return
        started = time.monotonic()
        with locked(
            layout.keeper_lock, waiting=lambda: report("the last engine is ending, waiting for it")
        ) as lock:
            _spawn_keeper(layout, lock)
        while not answers(layout.docker_socket):
            if not in_use(layout.keeper_lock) or time.monotonic() - started > START_SECONDS:
                raise EngineUnavailable(f"the private engine did not start:\n{_what_it_said(layout)}")
            time.sleep(0.05)
        report(f"private engine ready in {time.monotonic() - started:.1f} s")
        _forget_the_last_users(layout)


def _forget_the_last_users(layout: Layout) -> None:
    """Containers and layers without a name, which those who were killed could not remove."""
    docker = DockerCommand(find_command(), env=environment(layout))
    for kind in ("container", "image"):
        docker(kind, "prune", "--force")


def environment(layout: Layout) -> dict[str, str]:
    """Variables that make any Docker client talk to the engine there, whatever the machine's own say."""
    layout.client_config.mkdir(exist_ok=True)
    return {
        "DOCKER_HOST": f"unix://{layout.docker_socket}",
        "DOCKER_CONFIG": str(layout.client_config),
        "DOCKER_CONTEXT": "",
        "DOCKER_TLS_VERIFY": "",
    }


def _spawn_keeper(layout: Layout, lock: IO[str]) -> None:
    """Detached and with a small environment: it serves whoever comes, longer than we may live.

    It inherits the lock that says that there is one, so there is no moment without it while it lives.
    """
    layout.logs.mkdir(parents=True, exist_ok=True)
    env = {name: value for name in KEPT_ENVIRONMENT if (value := os.environ.get(name))}
    env["PATH"] = os.pathsep.join(SYSTEM_FOLDERS)
    isolated = [
        "unshare",
        "--mount",
        "--propagation=private",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    keeper = [sys.executable, "-I", "-m", "noctaya_engine.keeper", str(layout.folder)]
    with (layout.logs / "keeper.log").open("wb") as log:
        subprocess.run(
            ["setsid", "--fork", *isolated, *keeper],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            pass_fds=(lock.fileno(),),
            check=True,
        )


def _what_it_said(layout: Layout) -> str:
    said = []
    for name in ("keeper", "containerd", "dockerd"):
        log = layout.logs / f"{name}.log"
        with contextlib.suppress(FileNotFoundError):
            said.append(f"{log}:\n{last_words(log.read_bytes())}")
    return "\n".join(said)
