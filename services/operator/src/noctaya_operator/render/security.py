"""Security contexts: `restricted` Pod Security for our containers, what engines bear for theirs.

Most engine images run as root and write where they like, so their containers are denied what no engine needs:
any seccomp profile but the default one, and ways to gain privileges (decision 0010). What an engine can do
without besides, its InferenceRuntime says (decision 0023).
"""

from __future__ import annotations

from typing import Final

from noctaya_api.v1alpha1.pod_security import VOLUME_GROUP, PodSecurity, PodSecurityLevel

from noctaya_operator.kube.objects import Object

NON_ROOT: Final = 65532
"""User and group of all our images."""
SECRET_MODE: Final = 0o440
"""Mode of mounted Secrets: readable for the Pod's group, which our user is in."""
GUEST_SECRET_MODE: Final = 0o444
"""The same in an engine's Pod, whose user is not known here."""


def restricted_pod(*, group: int = NON_ROOT) -> Object:
    """Security context of a Pod whose containers are all ours; `group` is what its volumes belong to."""
    return {
        "runAsNonRoot": True,
        "runAsUser": NON_ROOT,
        "runAsGroup": NON_ROOT,
        "fsGroup": group,
        "seccompProfile": _runtime_default(),
    }


def writing_pod(engine: PodSecurity | None) -> Object:
    """The same for a Pod that writes to a claim, which belongs to the group that the engine's Pod names.
    Volumes that already belong to it are not walked through again."""
    group = VOLUME_GROUP if engine is None else engine.volume_group
    return {**restricted_pod(group=group), "fsGroupChangePolicy": "OnRootMismatch"}


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


def engine_pod(asked: PodSecurity | None) -> Object:
    """Security context of an engine's Pod; `asked` is what its InferenceRuntime says of it."""
    context = Object(seccompProfile=_runtime_default())
    if asked is None:
        return context
    if _restricted(asked):
        context["runAsNonRoot"] = True
    if asked.run_as_user is not None:
        context["runAsUser"] = asked.run_as_user
    if asked.run_as_group is not None:
        context["runAsGroup"] = asked.run_as_group
    return {**context, "fsGroup": asked.volume_group, "fsGroupChangePolicy": "OnRootMismatch"}


def engine_container(asked: PodSecurity | None) -> Object:
    """Security context of an engine's container. Its image stays writable: engines compile kernels and unpack
    code beside their own."""
    denied: Object = {"allowPrivilegeEscalation": False}
    return {**denied, "capabilities": {"drop": ["ALL"]}} if _restricted(asked) else denied


def _restricted(asked: PodSecurity | None) -> bool:
    return asked is not None and asked.level is PodSecurityLevel.RESTRICTED


def _runtime_default() -> Object:
    return {"type": "RuntimeDefault"}
