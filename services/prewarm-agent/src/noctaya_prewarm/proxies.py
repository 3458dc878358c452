"""Which proxy a URL goes through, by the usual variables: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY.

As in other tools lower-case names win, and entries of NO_PROXY are names, their subdomains, addresses with an
optional port, or `*`; networks such as 10.0.0.0/8 are understood too, since clusters write them.
"""

import base64
import ipaddress
import urllib.parse
import urllib.request
from dataclasses import dataclass

from noctaya_prewarm.errors import BadSettings


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """An HTTP proxy."""

    host: str
    port: int
    authorization: str = ""
    """Value of Proxy-Authorization, or empty."""


def proxy_for(scheme: str, host: str, port: int) -> Proxy | None:
    """The proxy for requests to that server, or None for a direct connection.

    Raises:
        BadSettings: the variable holds something else than the URL of an HTTP proxy.
    """
    found = urllib.request.getproxies_environment()
    name = scheme if found.get(scheme) else "all"
    url = found.get(name)
    if not url or _is_exempt(host, port, found.get("no", "")):
        return None
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    variable = f"{name.upper()}_PROXY"
    if parts.scheme != "http":
        raise BadSettings(
            f"{variable} names a proxy of the kind {parts.scheme}://; name its http:// port: what goes "
            "through that to an https:// hub is encrypted all the same"
        )
    if not parts.hostname:
        raise BadSettings(f"{variable} names no host")
    try:
        proxy_port = parts.port or 80
    except ValueError as error:
        raise BadSettings(f"{variable} has no valid port") from error
    return Proxy(host=parts.hostname, port=proxy_port, authorization=_authorization(parts))


def _authorization(parts: urllib.parse.SplitResult) -> str:
    if parts.username is None:
        return ""
    user = urllib.parse.unquote(parts.username)
    password = urllib.parse.unquote(parts.password or "")
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _is_exempt(host: str, port: int, entries: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    for raw in entries.split(","):
        entry = raw.strip().lower()
        if entry == "*" or (address is not None and _holds(entry, address)):
            return True
        name, _, wanted_port = entry.rpartition(":") if _has_port(entry) else (entry, "", "")
        name = name.removeprefix("*").removeprefix(".").strip("[]")
        named = host.lower() == name or host.lower().endswith(f".{name}")
        if name and named and wanted_port in {"", str(port)}:
            return True
    return False


def _has_port(entry: str) -> bool:
    return entry.startswith("[") and "]:" in entry if entry.count(":") != 1 else True


def _holds(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if "/" not in entry:
        return False
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
