"""What KEDA sends with every call: the trigger's metadata, checked in one place (contracts 4.1)."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from noctaya_api.names import (
    SCALER_METADATA_METRIC_NAME,
    SCALER_METADATA_TARGET_VALUE,
    SCALER_METRIC,
)

METRIC_NAME = SCALER_METRIC
_DECIMAL = re.compile(r"[+]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INT64_MAX = 2**63 - 1


class InvalidTrigger(ValueError):
    """The call's metadata or metric name is not what this scaler serves; INVALID_ARGUMENT on the wire."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A checked trigger."""

    metric_name: str
    target: float
    """Demand one replica shall carry; finite and above 0."""

    @property
    def whole_target(self) -> int:
        """The target for clients that read only the integer field; at least 1, so nobody divides by zero."""
        return min(_INT64_MAX, max(1, round(self.target)))


def parse_trigger(metadata: Mapping[str, str], *, metric_name: str = METRIC_NAME) -> Trigger:
    """Check a trigger's metadata.

    Raises:
        InvalidTrigger: another `metricName` than `metric_name`, or a `targetValue` that is missing or not a
            finite decimal number above 0.
    """
    name = metadata.get(SCALER_METADATA_METRIC_NAME, "") or metric_name
    if name != metric_name:
        raise InvalidTrigger(f"metricName {name!r} is not served here, only {metric_name!r}")
    text = metadata.get(SCALER_METADATA_TARGET_VALUE)
    if text is None:
        raise InvalidTrigger("targetValue is missing in the trigger's metadata")
    target = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not (math.isfinite(target) and target > 0):
        raise InvalidTrigger(f"targetValue {text!r} is not a finite number above 0")
    return Trigger(metric_name=name, target=target)
