"""What the operator reports about an LLMService."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from noctaya_api.conditions import Phase
from noctaya_api.keep import KeepState
from noctaya_api.names import ACTIVATION_ID
from noctaya_api.v1alpha1.base import LIST_MAP_KEYS, LIST_TYPE, Condition, KubeModel
from noctaya_api.v1alpha1.scalars import GoDuration, Int32, Int64, Timestamp

Count = Annotated[Int64, Field(ge=0)]

RECENT_ACTIVATIONS: Final = 4
"""Timelines kept beside the last one: with it a handful, in some 3 KB of an object."""


class PrewarmState(StrEnum):
    """How far the download of the weights is."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"


class PrewarmStatus(KubeModel):
    """Progress of the download of the weights. What is not known is absent."""

    state: PrewarmState = Field(description="How far the download is.")
    started_at: Timestamp | None = Field(default=None, description="When the Job began.")
    finished_at: Timestamp | None = Field(default=None, description="When it was complete or given up.")
    bytes_done: Count | None = Field(default=None, description="Bytes that are there and verified.")
    bytes_total: Count | None = Field(default=None, description="Bytes of the whole model.")
    bytes_per_second: Count | None = Field(default=None, description="Recent rate.")
    current_file: str | None = Field(default=None, description="File being downloaded.")
    eta_seconds: Count | None = Field(default=None, description="Seconds that the rest will take.")
    attempt: Count | None = Field(default=None, description="Number of the attempt; the first is 1.")
    revision: str | None = Field(
        default=None, description="What was downloaded: the commit of a hub repository, or a digest."
    )
    node: str | None = Field(
        default=None, description="Node that the download ran on; with HostPath the weights are there."
    )
    code: Count | None = Field(default=None, description="Exit code of an attempt that failed.")
    reason: str | None = Field(default=None, description="One word for the failure of an attempt.")
    message: str | None = Field(default=None, description="Why it failed or waits.")


class ModelStatus(KubeModel):
    """Which weights exactly a URI stands for."""

    uri: str = Field(description="The URI that the rest belongs to; after a change of the URI it is void.")
    revision: str | None = Field(
        default=None, description="Commit of a hub repository, as the last download resolved it."
    )
    digest: str | None = Field(
        default=None,
        description="Digest of an OCI artifact named by a tag. The service keeps to it, whatever becomes of "
        "the tag.",
    )


class ActivationOutcome(StrEnum):
    """How an activation stands."""

    IN_PROGRESS = "InProgress"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ActivationDurations(KubeModel):
    """Time spent in each phase of an activation, as Go durations. A phase whose ends were not both seen is
    absent."""

    demand: GoDuration | None = Field(
        default=None, description="From the request until the autoscaler was told of it."
    )
    autoscaling: GoDuration | None = Field(default=None, description="Until replicas were written.")
    scheduling: GoDuration | None = Field(default=None, description="Until a node was found.")
    image_pull: GoDuration | None = Field(default=None, description="Until the images were there.")
    weights: GoDuration | None = Field(
        default=None, description="Spent waiting for weights before the engine started."
    )
    start: GoDuration | None = Field(default=None, description="Until the engine's process started.")
    load: GoDuration | None = Field(default=None, description="From the start of the engine until ready.")
    first_byte: GoDuration | None = Field(
        default=None, description="From ready until the first byte of an answer to a request that had waited."
    )
    total: GoDuration | None = Field(default=None, description="From the request until ready.")


class ActivationRecord(KubeModel):
    """Timeline of one activation: how the service came from no replica to a ready one.

    Times of Pods are the kubelet's and whole seconds, those of requests the gateways', the others when the
    operator saw them. No time is later than the next one: what was seen late is taken back.
    """

    id: Annotated[str, Field(pattern=ACTIVATION_ID)] | None = Field(
        default=None,
        description="Id that the gateway that was asked first gave it: also in its log, in the header "
        "x-noctaya-activation-id, and the trace id of its spans. Absent when no gateway tells.",
    )
    outcome: ActivationOutcome = Field(description="How the activation stands.")
    pod: str | None = Field(default=None, description="Pod that the times are of.")
    requested: Timestamp = Field(
        description="When a gateway was asked, or a replica was; as the operator saw it if no gateway tells."
    )
    keda_told: Timestamp | None = Field(
        default=None,
        description="When a gateway had told KEDA; with several gateways, the aggregate scaler.",
    )
    replicas_written: Timestamp | None = Field(
        default=None, description="When the autoscaler had raised the replicas."
    )
    scheduled: Timestamp | None = Field(default=None, description="When a node was found.")
    images_pulled: Timestamp | None = Field(default=None, description="When the images were on the node.")
    weights_present: Timestamp | None = Field(
        default=None, description="When the wait for the weights was over."
    )
    started: Timestamp | None = Field(default=None, description="When the engine's process started.")
    ready: Timestamp | None = Field(default=None, description="When the replica took requests.")
    first_byte: Timestamp | None = Field(
        default=None,
        description="When the first answer to a request that had waited began. Absent when none had, or no "
        "gateway could be asked.",
    )
    ended: Timestamp | None = Field(
        default=None,
        description="When the service was back at no replicas; the next activation is a new one.",
    )
    durations: ActivationDurations | None = Field(default=None, description="Time spent in each phase.")
    message: str | None = Field(default=None, description="What stands in the way.")


class KeepStatus(KubeModel):
    """What the annotation `serving.noctaya.io/keep` asks for while it holds."""

    state: KeepState = Field(description="Awake: replicas run without demand. Asleep: none runs despite it.")
    replicas: Count = Field(
        description="Replicas that run at least: what the annotation asks for, scaling.max at most."
    )
    until: Timestamp | None = Field(
        default=None, description="When it ends by itself; absent when it does not."
    )


class LLMServiceStatus(KubeModel):
    """What is true of the service now."""

    observed_generation: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="The metadata.generation this status was computed from."
    )
    phase: Phase | None = Field(default=None, description="Summary of the state in one word.")
    resolved_runtime: str | None = Field(default=None, description="Name of the InferenceRuntime in use.")
    replicas: Int32 = Field(
        default_factory=int,
        exclude_if=lambda value: not value,
        description="Backend replicas that are ready.",
    )
    endpoint_url: str | None = Field(
        default=None, alias="endpointURL", description="URL for OpenAI clients inside the cluster."
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="The aspects Ready, Degraded and AutoscalingReady, each with a reason; Kept while the "
        "annotation keep is set.",
        json_schema_extra={LIST_TYPE: "map", LIST_MAP_KEYS: ["type"]},
    )
    model: ModelStatus | None = Field(default=None, description="Which weights exactly are meant.")
    prewarm: PrewarmStatus | None = Field(
        default=None, description="Progress of the download of the weights, where there is one."
    )
    keep: KeepStatus | None = Field(
        default=None, description="Whether the service is kept awake or asleep, whatever its demand."
    )
    last_activation: ActivationRecord | None = Field(
        default=None, description="Timeline of the activation that is going on, or of the last one."
    )
    recent_activations: Annotated[list[ActivationRecord], Field(max_length=RECENT_ACTIVATIONS)] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Timelines of the activations before the last one, the newest first.",
        json_schema_extra={LIST_TYPE: "atomic"},
    )
