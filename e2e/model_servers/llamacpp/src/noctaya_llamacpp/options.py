"""Command line of the server, checked before the engine sees it.

The engine answers every bad input with the same exception after a page of log lines; a person (or `kubectl
logs`) is better served by one sentence, so files and ports are looked at here first.
"""

import argparse
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GGUF_MAGIC = b"GGUF"
HOST_VARIABLE = "LLAMACPP_HOST"
"""Default of --host: an image sets it to 0.0.0.0, so that the same arguments do in a Pod and on a desk."""


class OptionError(Exception):
    """An option that cannot work; the message is for the person who typed it."""


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options. `context` counts tokens for each of the `parallel` requests."""

    model: Path
    alias: str
    host: str
    port: int
    parallel: int
    context: int
    threads: int


def parse_options(arguments: Sequence[str]) -> Options:
    """Parse and check; raises OptionError (bad value) or SystemExit (argparse: usage, --help)."""
    parser = argparse.ArgumentParser(prog="noctaya-llamacpp", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--model", type=Path, required=True, help="a .gguf file, or a directory holding exactly one"
    )
    parser.add_argument("--alias", default="", help="model id; default: the name of the file")
    parser.add_argument("--host", default=os.environ.get(HOST_VARIABLE, "127.0.0.1"))
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free port")
    parser.add_argument("--parallel", type=int, default=4, help="requests decoded at the same time")
    parser.add_argument("--ctx", type=int, default=2048, help="context in tokens for each parallel request")
    parser.add_argument("--threads", type=int, default=default_threads())
    given = parser.parse_args(arguments)
    for name, low, high in (
        ("port", 0, 65535),
        ("parallel", 1, 256),
        ("ctx", 64, 1 << 20),
        ("threads", 1, 1024),
    ):
        value = getattr(given, name)
        if not low <= value <= high:
            raise OptionError(f"--{name} must be within {low}..{high}, not {value}")
    model = find_model(given.model)
    check_address(given.host, given.port)
    return Options(
        model=model,
        alias=given.alias or model.stem,
        host=given.host,
        port=given.port,
        parallel=given.parallel,
        context=given.ctx,
        threads=given.threads,
    )


def default_threads() -> int:
    """Half of the logical processors: about one a physical core, where decoding is fastest. More threads
    only wait for each other, and do so by spinning, which hurts on a busy machine.
    """
    return max(1, (os.cpu_count() or 1) // 2)


def find_model(path: Path) -> Path:
    """The GGUF file meant by `path`.

    Raises OptionError when there is none, several, or it is something else.
    """
    if path.is_dir():
        found = sorted(path.glob("*.gguf"))
        if len(found) != 1:
            raise OptionError(
                f"--model {path} is a directory with {len(found)} .gguf files, exactly one is needed"
            )
        path = found[0]
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise OptionError(f"--model {path} can't be read: {error.strerror}") from error
    if magic != GGUF_MAGIC:
        raise OptionError(f"--model {path} is not a GGUF file")
    return path


def check_address(host: str, port: int) -> None:
    """Raise OptionError when nothing could listen there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise OptionError(f"can't listen on {host}:{port}: {error.strerror or error}") from error
