"""Registries for tests: distribution's as a process, one of ours that lies, and oras to pull from both."""

import asyncio
import base64
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import STDOUT, CompletedProcess, Popen, run

from noctaya_model_hub import Faults
from noctaya_model_hub.content import Inline
from noctaya_model_hub.exchange import Reply, Request, file_reply, json_reply, text_reply
from noctaya_model_hub.log import RequestLog
from noctaya_model_hub.server import Answer, Server
from noctaya_parts import ensure
from oci_artifacts import MANIFEST, sha256

USER, PASSWORD = "puller", "pull-Pa:ssword"
_BCRYPT = "$2b$04$x3dU1Wjz5L.XUBd/JEYineoSyBlXKOV6TfdfWXzpw8wv87VJEJI2m"
_LISTENING = re.compile(r"listening on (127\.0\.0\.1:\d+)")
TIMEOUT = 90


@contextmanager
def real_registry(folder: Path, *, private: bool = False) -> Iterator[str]:
    """distribution's registry on a free port, with one user when it is private. Gives host and port."""
    settings: dict[str, object] = {
        "version": 0.1,
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": "127.0.0.1:0", "secret": "of these tests"},
    }
    if private:
        (folder / "htpasswd").write_text(f"{USER}:{_BCRYPT}\n")
        settings["auth"] = {"htpasswd": {"realm": "tests", "path": str(folder / "htpasswd")}}
    config = folder / "config.yml"
    config.write_text(json.dumps(settings))
    command: list[str | Path] = [ensure("registry")["registry"], "serve", config]
    told = folder / "log"
    with told.open("w") as log:
        process = Popen(command, stdout=log, stderr=STDOUT, env={"OTEL_TRACES_EXPORTER": "none"})
        try:
            yield _address(process, told)
        finally:
            process.kill()
            process.wait()


def _address(process: "Popen[bytes]", told: Path) -> str:
    """Where the registry listens, as it tells once it does."""
    while (found := _LISTENING.search(told.read_text())) is None:
        if process.poll() is not None:
            raise AssertionError(f"the registry did not start: {told.read_text()}")
        time.sleep(0.02)
    return found[1]


def oras(*arguments: str | Path, cwd: Path | None = None) -> "CompletedProcess[str]":
    """Run oras with the environment the pull container has."""
    command = [ensure("oras")["oras"], *arguments]
    return run(
        command, env={"HOME": "/"}, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def push(registry: str, folder: Path, names: Sequence[str], *, tag: str = "v1") -> str:
    """Push files and directories of a folder as oras does it. Gives the digest."""
    login = ["--username", USER, "--password", PASSWORD]
    reference = f"{registry}/team/model:{tag}"
    pushed = oras("push", "--plain-http", *login, reference, *names, cwd=folder)
    assert pushed.returncode == 0, pushed.stderr
    found = re.search(r"Digest: sha256:([0-9a-f]{64})", pushed.stdout)
    assert found is not None
    return found[1]


def pull(reference: str, layout: Path, *, config: Path | None = None) -> "CompletedProcess[str]":
    """Pull with the very arguments of the pull container."""
    login = [] if config is None else ["--from-registry-config", str(config)]
    return oras(
        "cp", "--no-tty", "--from-plain-http", *login, "--to-oci-layout", reference, f"{layout}:artifact"
    )


@contextmanager
def serve_beside(answer: Answer, *, faults: Faults | None = None) -> Iterator[str]:
    """Serve answers from a thread of its own. Gives host and port."""
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    started = threading.Event()
    server = Server(answer, faults=faults or Faults(), log=RequestLog())

    async def serve() -> None:
        await server.start()
        started.set()
        await ended.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="registry")
    thread.start()
    try:
        assert started.wait(30)
        yield f"127.0.0.1:{server.port}"
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        loop.close()


class LyingRegistry:
    """A registry whose answers are what the test says, and which may want a token.

    Args:
        blobs: content by what is asked for: a digest or a tag. Digests are not checked.
        media_types: of manifests, by the same names.
        token: the Bearer token it accepts; empty for anybody.
        refresh: the identity token for which its token service gives the Bearer token.
    """

    def __init__(
        self,
        blobs: Mapping[str, bytes],
        *,
        media_types: Mapping[str, str] | None = None,
        token: str = "",
        refresh: str = "",
    ) -> None:
        self._blobs = dict(blobs)
        self._media_types = dict(media_types or {})
        self._token, self._refresh = token, refresh

    def answer(self, request: Request) -> Reply:
        """What the registry answers."""
        match request.segments:
            case ["token"]:
                return self._give_token(request)
            case ["v2", "team", "model", kind, name]:
                return self._content(kind, name, request)
            case ["v2", ""] | ["v2"]:
                return text_reply("ping", 200, "{}")
        return text_reply("unknown", 404, "{}")

    def _content(self, kind: str, name: str, request: Request) -> Reply:
        if self._token and request.bearer != self._token:
            challenge = (
                f'Bearer realm="{request.base}/token",service="tests",scope="repository:team/model:pull"'
            )
            return text_reply(kind, 401, "{}", headers={"WWW-Authenticate": challenge})
        content = self._blobs.get(name)
        if content is None:
            return json_reply(kind, {"errors": [{"code": "MANIFEST_UNKNOWN"}]}, status=404)
        headers = {
            "Content-Type": self._media_types.get(
                name, MANIFEST if kind == "manifests" else "application/octet-stream"
            ),
            "Docker-Content-Digest": name if ":" in name else f"sha256:{sha256(content)}",
        }
        return file_reply(kind, name, Inline(content), request, etag=name, headers=headers)

    def _give_token(self, request: Request) -> Reply:
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        if self._refresh and form.get("refresh_token") == self._refresh:
            return json_reply("token", {"access_token": self._token})
        return text_reply("token", 401, "{}")


def basic(user: str = USER, password: str = PASSWORD) -> str:
    """The encoded form of a name and a password."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()
