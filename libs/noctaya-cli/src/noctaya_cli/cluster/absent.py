"""What to say of a service that is not there: where there is one of that name, or what else there is.

A service in another namespace than the kubeconfig's context names is what newcomers look for most.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, Protocol

from noctaya_cli.cluster.access import ClusterError, NotThere, Object, services_path

NOT_INSTALLED: Final = "this cluster has no LLMServices: the CRDs of Noctaya are not installed"
SHOWN: Final = 5
"""Names at most; more are no help."""


class Lister(Protocol):
    """What it takes to look around."""

    def items(self, path: str, *, labels: str = "", fields: str = "") -> list[Object]:
        """All objects of a collection."""


def absent(cluster: Lister, namespace: str, name: str) -> ClusterError:
    """The error for a service that was not found, with as much of a hint as the user's rights allow."""
    said = f"there is no LLMService {name} in namespace {namespace}"
    everywhere, here = _looked(cluster, None), _looked(cluster, namespace)
    if everywhere is None and here is None:
        return ClusterError(NOT_INSTALLED)
    known = everywhere or here or []
    if elsewhere := sorted({space for space, each in known if each == name and space != namespace}):
        return ClusterError(f"{said}; there is one in {_listed(elsewhere)}: add -n {elsewhere[0]}")
    names = sorted({each for space, each in known if space == namespace})
    close = get_close_matches(name, names, n=SHOWN)
    if close or names:
        return ClusterError(f"{said}; there is {_listed(close or names)}")
    return ClusterError(said)


def elsewhere(cluster: Lister) -> str:
    """A hint for who finds a namespace without services; empty when there is none to give."""
    count = len(_looked(cluster, None) or ())
    if not count:
        return ""
    return f" There {'is 1' if count == 1 else f'are {count}'} elsewhere: add -A."


def _looked(cluster: Lister, namespace: str | None) -> list[tuple[str, str]] | None:
    """Namespace and name of services, as far as they may be listed; None where the kind is not known."""
    try:
        return [_key(each) for each in cluster.items(services_path(namespace))]
    except NotThere:
        return None
    except ClusterError:
        # Only a hint is lost: who asks has been told already that the service is not there.
        return []


def _key(service: Object) -> tuple[str, str]:
    metadata = service.get("metadata") or {}
    return str(metadata.get("namespace")), str(metadata.get("name"))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
