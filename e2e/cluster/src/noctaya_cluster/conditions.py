"""Conditions of a Kubernetes object's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_true(status: Mapping[str, Any], condition: str) -> bool:
    """Whether a condition of a status holds."""
    conditions = status.get("conditions") or []
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)
