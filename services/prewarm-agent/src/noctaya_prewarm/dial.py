"""Connections to servers, directly or through a proxy."""

import http.client
import ssl
import urllib.parse
from typing import Final

from noctaya_prewarm.errors import BadSettings, NetworkFault
from noctaya_prewarm.proxies import Proxy, proxy_for
from noctaya_prewarm.retry import Retryable

_CONNECT_TIMEOUT: Final = 10.0
_PORTS: Final = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""Scheme, host and port."""


class Connection:
    """One open connection. `target` is what to write into a request line for a URL of its origin."""

    def __init__(self, http_connection: http.client.HTTPConnection, proxy: Proxy | None) -> None:
        self.http = http_connection
        self._proxy = proxy

    def target(self, url: str) -> str:
        """The request line's target: a path, or the whole URL for a proxy that forwards."""
        parts = urllib.parse.urlsplit(url)
        path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        return path if self._proxy is None else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"

    def headers(self) -> dict[str, str]:
        """What the proxy wants to see with each request."""
        if self._proxy is None or not self._proxy.authorization:
            return {}
        return {"Proxy-Authorization": self._proxy.authorization}


def origin_of(url: str) -> Origin:
    """The server that a URL belongs to.

    Raises:
        NetworkFault: it is no URL with http or https, a host and a valid port.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise NetworkFault(f"{shown(url)} is no URL: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise NetworkFault(f"{shown(url)} is no http or https URL")
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def connect(origin: Origin, *, context: ssl.SSLContext, timeout: float) -> Connection:
    """Open a connection; later reads and writes may block for `timeout` seconds each.

    Raises:
        Retryable: it can't be had now.
        NetworkFault: the server's certificate isn't trusted.
        BadSettings: the proxy variable is wrong, or the proxy wants a password.
    """
    scheme, host, port = origin
    proxy = proxy_for(scheme, host, port)
    where = (host, port) if proxy is None else (proxy.host, proxy.port)
    connection: http.client.HTTPConnection
    if scheme == "https":
        connection = http.client.HTTPSConnection(*where, timeout=_CONNECT_TIMEOUT, context=context)
        if proxy is not None:
            secret = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
            connection.set_tunnel(host, port, headers=secret)
    else:
        connection = http.client.HTTPConnection(*where, timeout=_CONNECT_TIMEOUT)
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise NetworkFault(
            f"the certificate of {host}:{port} is not trusted ({error.verify_message}); for a private "
            "authority set NOCTAYA_PREWARM_CA_FILE or SSL_CERT_FILE to its PEM file"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        if proxy is not None and " 407 " in f"{error} ":
            raise BadSettings(
                f"the proxy {proxy.host}:{proxy.port} wants other credentials: {error}"
            ) from error
        via = "" if proxy is None else f" through the proxy {proxy.host}:{proxy.port}"
        raise Retryable(f"can't connect to {host}:{port}{via}: {error or type(error).__name__}") from error
    assert connection.sock is not None
    connection.sock.settimeout(timeout)
    return Connection(connection, None if scheme == "https" else proxy)


def shown(url: str) -> str:
    """A URL for messages: without query, fragment and user, which may be credentials."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "a malformed URL"
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
