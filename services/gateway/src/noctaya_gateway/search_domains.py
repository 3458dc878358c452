"""Names of Services made absolute, so that one look-up is one question (and one for IPv6).

A name such as `model-pods.prod.svc` has fewer dots than `ndots`, so the C library first asks for it in every
domain of the Pod's search list; only the third of three is right. While an activation is pending a gateway
looks ten times a second: without this module that was 60 questions a second, 40 of them about names that
can't exist.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

RESOLVER_CONFIGURATION: Final = Path("/etc/resolv.conf")
SERVICE_SUFFIX: Final = ".svc"


def search_domains(text: str) -> tuple[str, ...]:
    """The search list of a resolv.conf(5): the last `search` or `domain` line counts."""
    found: tuple[str, ...] = ()
    for line in text.splitlines():
        keyword, *values = line.split() or [""]
        if keyword == "search" or (keyword == "domain" and values):
            found = tuple(value.rstrip(".") for value in values if value.rstrip("."))
    return found


def machine_search_domains(file: Path = RESOLVER_CONFIGURATION) -> tuple[str, ...]:
    """The search list of this machine or Pod; empty when there is none to be read."""
    try:
        return search_domains(file.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        log.info("no search list, names are looked up as they are", extra={"error": str(error)})
        return ()


def absolute(host: str, search: Sequence[str]) -> str:
    """A Service's name with the cluster's domain and a final dot, if the search list tells the domain.

    It does by the entry `svc.<domain>` beside `<domain>`, as the kubelet writes it. Others stay as they are.
    """
    if not host.endswith(SERVICE_SUFFIX):
        return host
    for entry in search:
        domain = entry.removeprefix("svc.")
        if domain != entry and domain in search:
            return f"{host}.{domain}."
    return host
