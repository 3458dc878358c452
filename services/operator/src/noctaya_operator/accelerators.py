"""What the accelerator of a runtime means for Pods: a device limit, where to run, what to mount.

A vendor adapter is thin on purpose. Device plugins hand out devices and engines bring their libraries, so
most vendors need nothing but the limit; Ascend images expect the driver of the node, and `cpu` has no device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from noctaya_api.conditions import StepReason
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.vendor import Vendor

from noctaya_operator.plan_error import PlanError

VOLCANO: Final = "volcano"


@dataclass(frozen=True, kw_only=True)
class HostMount:
    """A path of the node, mounted read-only at the same path."""

    name: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """Device and placement of the backend; prewarming takes the placement without the device."""

    resource_name: str
    """Extended resource; empty when no device is asked for."""
    count: int
    """Whole devices a replica; 0 when no device is asked for."""
    host_mounts: tuple[HostMount, ...]
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]
    scheduler: str
    """Scheduler of the Pods; empty means the cluster's default."""
    queue: str
    """Volcano queue; empty means none."""

    @property
    def scarce(self) -> bool:
        """Whether a second Pod beside a running one may find no device."""
        return self.count > 0


_ASCEND_MOUNTS: Final = (
    HostMount(name="ascend-driver", path="/usr/local/Ascend/driver"),
    HostMount(name="npu-smi", path="/usr/local/bin/npu-smi"),
    HostMount(name="dcmi", path="/usr/local/dcmi"),
    HostMount(name="ascend-install-info", path="/etc/ascend_install.info"),
)
HOST_MOUNTS: Final[Mapping[Vendor, tuple[HostMount, ...]]] = MappingProxyType(
    {
        Vendor.NVIDIA: (),
        Vendor.ASCEND: _ASCEND_MOUNTS,
        Vendor.AMD: (),
        Vendor.INTEL: (),
        Vendor.CPU: (),
    }
)
"""The vendors there is an adapter for, with what their images expect of the node."""


def check_vendor(runtime: InferenceRuntime) -> None:
    """Raises PlanError for a vendor without an adapter."""
    if runtime.spec.vendor not in HOST_MOUNTS:
        raise PlanError(
            StepReason.UNSUPPORTED_VENDOR,
            f"InferenceRuntime {runtime.name!r} has the vendor {runtime.spec.vendor!r}, for which this "
            "version has no adapter",
        )


def plan_accelerator(service: LLMService, runtime: InferenceRuntime) -> Accelerator:
    """Translate the runtime's accelerator for this service. Raises PlanError."""
    wanted, spec = service.spec.resources, runtime.spec
    if wanted.fraction is not None:
        raise PlanError(
            StepReason.RENDER,
            "resources.fraction is reserved for a later version; ask for whole accelerators",
        )
    on_cpu = spec.vendor is Vendor.CPU
    resource_name = "" if on_cpu else spec.accelerator.resource_name or ""
    if not on_cpu and not resource_name:
        raise PlanError(StepReason.RENDER, f"InferenceRuntime {runtime.name!r} names no accelerator resource")
    scheduler = spec.accelerator.scheduler
    name, queue = (scheduler.name or "", scheduler.queue or "") if scheduler else ("", "")
    if queue and name != VOLCANO:
        raise PlanError(
            StepReason.RENDER,
            f"InferenceRuntime {runtime.name!r} names the scheduler queue {queue!r}, which needs the "
            f"scheduler name {VOLCANO}",
        )
    count = 0 if on_cpu else wanted.accelerators
    return Accelerator(
        resource_name=resource_name if count else "",
        count=count,
        host_mounts=HOST_MOUNTS[spec.vendor],
        node_selector=dict(spec.accelerator.node_selector),
        tolerations=tuple(toleration.manifest() for toleration in spec.accelerator.tolerations),
        scheduler=name,
        queue=queue,
    )
