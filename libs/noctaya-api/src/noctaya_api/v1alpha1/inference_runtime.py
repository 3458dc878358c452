"""InferenceRuntime: how an engine runs on one kind of accelerator, shared by all services of a cluster."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from noctaya_api.v1alpha1.base import LIST_MAP_KEYS, LIST_TYPE, Condition, KubeModel, ObjectMeta, Rule
from noctaya_api.v1alpha1.core import EnvVar, Probe, Toleration
from noctaya_api.v1alpha1.pod_security import PodSecurity, PodSecurityLevel
from noctaya_api.v1alpha1.scalars import Bool, Int32, Int64, NonEmpty, StringMap
from noctaya_api.v1alpha1.vendor import Vendor

# The name becomes a label value on the backend, and those end at 63 characters.
MAX_RUNTIME_NAME_LENGTH: Final = 63


class Family(StrEnum):
    """Inference engines."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llamacpp"
    CUSTOM = "custom"


class ContainerPort(KubeModel):
    """The port the engine listens on."""

    name: Annotated[str, Field(max_length=15, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = Field(
        default="http", description="Name of the port."
    )
    container_port: Annotated[Int32, Field(ge=1, le=65535)] = Field(
        default=8000, description="Number of the port."
    )


class Container(KubeModel):
    """The serving container."""

    image: NonEmpty = Field(description="Image of the engine.")
    command: list[str] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Program to run instead of the image's entrypoint; template actions are rendered.",
    )
    args: list[str] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Arguments. {{ .Model.Path }}, {{ .Service.Name }} and {{ .Service.Namespace }} are "
        "replaced.",
    )
    env: list[EnvVar] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Environment variables; literal values are rendered like arguments.",
    )
    port: ContainerPort = Field(description="The port the engine listens on.")


class Sharing(KubeModel):
    """Whether accelerators can be shared."""

    supported: Bool | None = Field(default=None, description="For information only.")


class Scheduler(KubeModel):
    """Who places the Pods."""

    name: str | None = Field(
        default=None, description="Scheduler of the Pods; the cluster's default if absent."
    )
    queue: str | None = Field(
        default=None, description="Queue of the scheduler; only for the scheduler volcano."
    )


class Accelerator(KubeModel):
    """The device and the nodes that have it."""

    resource_name: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="Extended resource of the device, for example nvidia.com/gpu. Not needed for the "
        "vendor cpu.",
    )
    sharing: Sharing | None = Field(default=None, description="Whether accelerators can be shared.")
    node_selector: StringMap = Field(
        default_factory=dict, exclude_if=lambda value: not value, description="Labels of the nodes to run on."
    )
    tolerations: list[Toleration] = Field(
        default_factory=list, exclude_if=lambda value: not value, description="Taints of the nodes to run on."
    )
    scheduler: Scheduler | None = Field(default=None, description="Who places the Pods.")


class Health(KubeModel):
    """Probes of the serving container."""

    readiness: Probe | None = Field(
        default=None, description="When a replica takes requests; GET /health on the engine's port if absent."
    )
    liveness: Probe | None = Field(default=None, description="When a replica is restarted; never if absent.")
    startup: Probe | None = Field(
        default=None, description="How long loading may take; GET /health, 60 times 10 seconds, if absent."
    )


class Lifecycle(KubeModel):
    """How a replica ends."""

    termination_grace_period_seconds: Annotated[Int64, Field(ge=1)] | None = Field(
        default=None, description="Seconds between SIGTERM and SIGKILL, apart from draining."
    )
    pre_stop_drain: Bool = Field(
        default_factory=bool,
        exclude_if=lambda value: not value,
        description="Keep a replica alive for the drainTimeout of the service before SIGTERM. Off unless "
        "set.",
    )


class Metrics(KubeModel):
    """Names of the engine's metrics, for dashboards; nothing is scaled by them."""

    path: str = Field(default="/metrics", description="Path of the metrics.")
    port: str = Field(default="http", description="Name of the port that serves them.")
    queue_depth: str = Field(description="Metric of waiting requests.")
    kv_cache_util: str | None = Field(default=None, description="Metric of the KV cache in use.")
    running: str | None = Field(default=None, description="Metric of requests in flight.")
    ttft: str | None = Field(default=None, description="Metric of the time to the first token.")


class InferenceRuntimeSpec(KubeModel):
    """How the engine runs."""

    rules: ClassVar = (
        Rule(
            cel="self.vendor == 'cpu' || has(self.accelerator.resourceName)",
            holds=lambda spec: spec.vendor is Vendor.CPU or spec.accelerator.resource_name is not None,
            message="accelerator.resourceName must be given unless the vendor is cpu",
        ),
        Rule(
            cel="self.vendor != 'ascend' || !has(self.podSecurity) || self.podSecurity.level != 'restricted'",
            holds=lambda spec: spec.vendor is not Vendor.ASCEND or not spec.restricted,
            message="podSecurity.level can't be restricted with the vendor ascend, whose drivers are "
            "directories of the node",
        ),
    )

    family: Family = Field(default=Family.VLLM, description="Inference engine. For information only.")
    vendor: Vendor = Field(description="Vendor of the accelerator, by which services select runtimes.")
    priority: Int32 = Field(
        default=0, description="Among runtimes of one vendor the highest number is taken."
    )
    container: Container = Field(description="The serving container.")
    accelerator: Accelerator = Field(
        default=Accelerator(), description="The device and the nodes that have it."
    )
    health: Health | None = Field(default=None, description="Probes of the serving container.")
    lifecycle: Lifecycle | None = Field(default=None, description="How a replica ends.")
    pod_security: PodSecurity | None = Field(
        default=None,
        description="What the engine is denied, and whom it runs as. If absent its image decides, within the "
        "level baseline.",
    )
    metrics: Metrics | None = Field(
        default=None, description="Names of the engine's metrics, for dashboards."
    )

    @property
    def restricted(self) -> bool:
        """Whether Pods of the engine are to meet the level `restricted`."""
        return self.pod_security is not None and self.pod_security.level is PodSecurityLevel.RESTRICTED


class InferenceRuntimeStatus(KubeModel):
    """What is true of the runtime now."""

    observed_generation: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="The metadata.generation this status was computed from."
    )
    services: Annotated[Int32, Field(ge=0)] | None = Field(
        default=None, description="How many LLMServices use the runtime."
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="The aspect Usable: whether services can be served by the runtime, and if not why.",
        json_schema_extra={LIST_TYPE: "map", LIST_MAP_KEYS: ["type"]},
    )


_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class InferenceRuntime(KubeModel):
    """How an inference engine runs on one kind of accelerator."""

    rules: ClassVar = (
        Rule(
            on_create=True,
            cel=f"self.metadata.name.size() <= {MAX_RUNTIME_NAME_LENGTH}",
            holds=lambda runtime: len(runtime.metadata.name) <= MAX_RUNTIME_NAME_LENGTH,
            message=f"metadata.name may have at most {MAX_RUNTIME_NAME_LENGTH} characters, because it "
            f"becomes a label",
        ),
        Rule(
            on_create=True,
            cel="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
            holds=lambda runtime: _NAME.fullmatch(runtime.metadata.name) is not None,
            message="metadata.name must consist of lower-case letters, digits, dashes and dots",
        ),
    )

    api_version: Literal["serving.noctaya.io/v1alpha1"] = "serving.noctaya.io/v1alpha1"
    kind: Literal["InferenceRuntime"] = "InferenceRuntime"
    metadata: ObjectMeta
    spec: InferenceRuntimeSpec = Field(description="How the engine runs.")
    status: InferenceRuntimeStatus | None = Field(default=None, description="What the operator reports.")

    @property
    def name(self) -> str:
        """Name of the runtime."""
        return self.metadata.name
