"""`python -m noctaya_model_hub`: the stand-in as a process or a container.

A folder given with --folder is served as it is: each `<organisation>/<name>` in it is a repository. More can
be made while it runs, over the control interface (see the README).
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from noctaya_model_hub.content import Content, OnDisk
from noctaya_model_hub.repository import Hub
from noctaya_model_hub.serving import Addresses, running_hub


def read_folder(hub: Hub, folder: Path) -> None:
    """Serve each `<organisation>/<name>` below the folder as a repository.

    Raises:
        OSError: the folder can't be read.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a directory")
    for repository in sorted(folder.glob("*/*/")):
        files: dict[str, Content | bytes | str] = {
            str(path.relative_to(repository)): OnDisk(path)
            for path in sorted(repository.rglob("*"))
            if path.is_file()
        }
        hub.create(str(repository.relative_to(folder)), files)


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. Exit status 0, or 1 when an address or the folder can't be used."""
    parser = argparse.ArgumentParser(prog="noctaya-model-hub", description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="", help="interface to listen on; every one by default")
    parser.add_argument("--port", type=int, default=8080, help="hub (Hugging Face, ModelScope, control)")
    parser.add_argument(
        "--cdn-port", type=int, default=8081, help="content network that large files come from"
    )
    parser.add_argument("--s3-port", type=int, default=8082, help="S3")
    parser.add_argument(
        "--cdn-host", default="", help="how clients reach the content network, if not as the hub"
    )
    parser.add_argument("--folder", type=Path, help="folder with <organisation>/<name>/<files>")
    parser.add_argument("--s3-key", action="append", default=[], metavar="ID:SECRET", help="key S3 accepts")
    given = parser.parse_args(arguments)
    hub = Hub()
    try:
        for pair in given.s3_key:
            identifier, _, secret = pair.partition(":")
            hub.s3_keys[identifier] = secret
        if given.folder is not None:
            read_folder(hub, given.folder)
        where = Addresses(
            host=given.host,
            port=given.port,
            cdn_port=given.cdn_port,
            s3_port=given.s3_port,
            cdn_host=given.cdn_host,
        )
        asyncio.run(_serve(hub, where))
    except OSError as error:
        sys.stderr.write(f"noctaya-model-hub: {error}\n")
        return 1
    return 0


async def _serve(hub: Hub, where: Addresses) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running_hub(hub, addresses=where) as served:
        sys.stdout.write(f"hub {served.url} cdn {served.cdn_url} s3 {served.s3_url}\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    sys.exit(main())
