"""Why a Pod is refused, by the API server or by the kubelet, in words that say what to change.

What the API server says begins with the name of the Pod, which is another one at each attempt; it is left
out, so that a status doesn't change with each of them.
"""

from __future__ import annotations

import re
from typing import Final

from noctaya_api.conditions import ObservationReason

_POD: Final = re.compile(r'^pods "[^"]*" is forbidden: ')
_POD_SECURITY: Final = re.compile(
    r'violates PodSecurity "(?P<level>[^":]*)[^"]*":?\s*(?P<what>.*)', re.DOTALL
)
_NODE: Final = (
    "a directory of the node (cache.strategy HostPath, drivers of Ascend) takes a namespace that enforces "
    "privileged; or set cache.strategy to NodeLocalPVC, SharedPVC or None"
)
_LEVEL: Final = (
    "set podSecurity.level of the InferenceRuntime to restricted, and runAsUser if its image starts as "
    "root, or let the namespace enforce baseline"
)


def refusal(message: str) -> tuple[ObservationReason, str]:
    """Reason and words for what the API server says when it does not create a Pod."""
    said = _POD.sub("", message)
    if "exceeded quota" in said:
        return ObservationReason.QUOTA_EXCEEDED, said
    found = _POD_SECURITY.search(said)
    if found is None:
        return ObservationReason.ADMISSION_DENIED, said
    level, what = found["level"], found["what"] or "the Pod as a whole"
    remedy = _NODE if "hostPath" in what else _LEVEL
    return (
        ObservationReason.POD_SECURITY_DENIED,
        f"the namespace enforces Pod Security {level!r}, which forbids {what}; {remedy}",
    )


def forbidden_user(message: str) -> str | None:
    """Words for what the kubelet says when it does not start a container as the user that its image names;
    None when it says something else."""
    if "runAsNonRoot" not in message:
        return None
    return f"{message}; set podSecurity.runAsUser of the InferenceRuntime to a user that can run its image"
