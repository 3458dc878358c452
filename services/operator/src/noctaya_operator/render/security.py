"""Security contexts: `restricted` Pod Security for our containers, what engines bear for theirs.

Engine images run as root and write where they like, so their containers get what no engine needs to be
without: the runtime's default seccomp profile and no way to gain privileges (decision 0010).
"""

from __future__ import annotations

from typing import Final

from noctaya_operator.kube.objects import Object

NON_ROOT: Final = 65532
"""User and group of all our images."""
SECRET_MODE: Final = 0o440
"""Mode of mounted Secrets: readable for the Pod's group, which our user is in."""
GUEST_SECRET_MODE: Final = 0o444
"""The same in an engine's Pod, whose user is not known here."""


def restricted_pod() -> Object:
    """Security context of a Pod whose containers are all ours."""
    return {
        "runAsNonRoot": True,
        "runAsUser": NON_ROOT,
        "runAsGroup": NON_ROOT,
        "fsGroup": NON_ROOT,
        "seccompProfile": _runtime_default(),
    }


def writing_pod() -> Object:
    """The same for a Pod that writes to a claim. Volumes that already belong to its group are not walked
    through again."""
    return {**restricted_pod(), "fsGroupChangePolicy": "OnRootMismatch"}


def root_pod() -> Object:
    """Security context of our Pod that writes to a directory of the node, which belongs to root and which no
    fsGroup changes. It has no capability; `restricted` forbids directories of the node anyway."""
    return {"runAsUser": 0, "runAsGroup": 0, "seccompProfile": _runtime_default()}


def restricted_container() -> Object:
    """Security context of a container of ours in a Pod with one of the contexts above."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def guest_container() -> Object:
    """Security context of a container of ours in an engine's Pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": NON_ROOT,
        "runAsGroup": NON_ROOT,
        **restricted_container(),
    }


def engine_pod() -> Object:
    """Security context of an engine's Pod."""
    return {"seccompProfile": _runtime_default()}


def engine_container() -> Object:
    """Security context of an engine's container."""
    return {"allowPrivilegeEscalation": False}


def _runtime_default() -> Object:
    return {"type": "RuntimeDefault"}
