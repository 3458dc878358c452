"""The stand-in as a whole: hub, content network and S3, each on an address of its own."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from noctaya_model_hub.control import Control
from noctaya_model_hub.exchange import Reply, Request, text_reply
from noctaya_model_hub.huggingface import Cdn, HuggingFace
from noctaya_model_hub.modelscope import ModelScope
from noctaya_model_hub.registry import Registry
from noctaya_model_hub.repository import Hub
from noctaya_model_hub.s3 import S3
from noctaya_model_hub.server import Answer, Server


@dataclass(frozen=True, kw_only=True)
class Served:
    """Where the running stand-in is.

    `url` is for HF_ENDPOINT and MODELSCOPE_ENDPOINT alike; `cdn_url` has another host name than `url`.
    """

    hub: Hub
    url: str
    cdn_url: str
    s3_url: str


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """Where to listen, and how the content network is called by its clients.

    An empty `cdn_host` makes redirects go to the host that the client used for the hub (with the other port):
    that is what works in a cluster.
    """

    host: str = "127.0.0.1"
    port: int = 0
    cdn_port: int = 0
    s3_port: int = 0
    cdn_host: str = "localhost"


@asynccontextmanager
async def running_hub(
    hub: Hub, *, addresses: Addresses | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Served]:
    """Serve a hub while the context lasts.

    Args:
        hub: may be changed while it is served.
        addresses: where; by default free ports of the loopback interface.
        tls: serve all three over HTTPS.

    Raises:
        OSError: an address can't be bound.
    """
    where = addresses or Addresses()
    scheme = "https" if tls else "http"

    async with AsyncExitStack() as stack:

        async def serve(answer: Answer, port: int) -> int:
            server = Server(answer, faults=hub.faults, log=hub.requests, host=where.host, port=port, tls=tls)
            await server.start()
            stack.push_async_callback(server.stop)
            return server.port

        cdn_port = await serve(Cdn(hub).answer, where.cdn_port)
        s3_port = await serve(S3(hub).answer, where.s3_port)

        def cdn_url(request: Request) -> str:
            host = where.cdn_host or request.headers.get("host", "localhost").rsplit(":", 1)[0]
            return f"{scheme}://{host}:{cdn_port}"

        port = await serve(_front(hub, cdn_url), where.port)
        host = where.host or "localhost"
        yield Served(
            hub=hub,
            url=f"{scheme}://{host}:{port}",
            cdn_url=f"{scheme}://{where.cdn_host or host}:{cdn_port}",
            s3_url=f"{scheme}://{host}:{s3_port}",
        )


def _front(hub: Hub, cdn_url: Callable[[Request], str]) -> Answer:
    dialects = [
        Control(hub).answer,
        Registry(hub.artifacts).answer,
        ModelScope(hub, cdn_url).answer,
        HuggingFace(hub, cdn_url).answer,
    ]

    def answer(request: Request) -> Reply:
        for dialect in dialects:
            reply = dialect(request)
            if reply is not None:
                return reply
        return text_reply("unknown", 404, "nothing is served here")

    return answer
