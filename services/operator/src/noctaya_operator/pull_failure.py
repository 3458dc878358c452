"""Why an image can't be pulled, in a few words that stay the same from attempt to attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

WAITING: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "ErrImageNeverPull"}
)
_CAUSES: Final = (
    (("not found", "manifest unknown", "does not exist"), "it does not exist"),
    (
        ("unauthorized", "authentication required", "denied", "forbidden"),
        "access is denied; check imagePullSecrets",
    ),
    (("x509", "certificate"), "the registry's certificate is not trusted"),
    (("no such host", "server misbehaving"), "the registry's name can't be resolved"),
    (("timeout", "timed out", "connection refused", "no route"), "the registry can't be reached"),
    (("toomanyrequests", "too many requests"), "the registry limits the rate"),
    (("no space left",), "the node's disk is full"),
)


def pull_failure(waiting: Mapping[str, Any]) -> str | None:
    """A clause that begins with a colon, empty when the cause is unknown; None when nothing fails."""
    reason = waiting.get("reason")
    if reason not in WAITING:
        return None
    if reason == "InvalidImageName":
        return ": its name is not valid"
    message = str(waiting.get("message") or "").lower()
    for signs, cause in _CAUSES:
        if any(sign in message for sign in signs):
            return f": {cause}"
    return ""
