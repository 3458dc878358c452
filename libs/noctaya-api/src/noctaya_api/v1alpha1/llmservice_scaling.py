"""The parts of an LLMService that govern demand: scaling and the endpoint with its cold-start behaviour."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from noctaya_api.v1alpha1.base import KubeModel, Rule
from noctaya_api.v1alpha1.scalars import Bool, GoDuration, Int32, NonEmpty, Quantity

_SECOND: Final = 1_000_000_000
_HOUR: Final = 3600 * _SECOND
_GO_DURATION: Final = r"^[-+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$"
"""Regular expression for a CEL string literal; like `parse_duration`."""
AtLeastOne = Annotated[Int32, Field(ge=1)]
KeyLimit = Annotated[Int32, Field(ge=1, le=1_000_000)]


# Rules look whether a field is there although it has a default: the API server checks the default `{}` of the
# object around it against them as it stands.


class ScalingMetric(StrEnum):
    """What replicas are counted by."""

    QUEUE_DEPTH = "queueDepth"
    KV_CACHE_UTIL = "kvCacheUtil"


class AuthenticationKind(StrEnum):
    """Scope of KEDA's authentication object."""

    TRIGGER_AUTHENTICATION = "TriggerAuthentication"
    CLUSTER_TRIGGER_AUTHENTICATION = "ClusterTriggerAuthentication"


class ColdStartMode(StrEnum):
    """What happens to a request that finds no ready backend."""

    KEEPALIVE = "keepalive"
    REJECT = "reject"


class AccessLog(StrEnum):
    """Which requests get a line in the gateway's access log."""

    ALL = "all"
    COLD = "cold"
    ERRORS = "errors"
    NONE = "none"


class AuthenticationRef(KubeModel):
    """KEDA's credentials for the scaler."""

    name: NonEmpty = Field(description="Name of the authentication object.")
    kind: AuthenticationKind = Field(
        default=AuthenticationKind.TRIGGER_AUTHENTICATION,
        description="TriggerAuthentication in the same namespace, or ClusterTriggerAuthentication.",
    )


class ScalerTls(KubeModel):
    """Mutual TLS between KEDA and the scaler."""

    server_secret_name: NonEmpty = Field(
        description="Secret with tls.crt, tls.key and ca.crt, in the namespace of the service."
    )
    authentication_ref: AuthenticationRef = Field(description="KEDA object with the client certificate.")


class ExternalScaler(KubeModel):
    """The gRPC endpoint that KEDA asks for demand."""

    tls: ScalerTls | None = Field(
        default=None, description="Mutual TLS; plaintext inside the cluster if absent."
    )


class Scaling(KubeModel):
    """How many backend replicas run, and when."""

    rules: ClassVar = (
        Rule(
            cel="!has(self.min) || !has(self.max) || self.min <= self.max",
            holds=lambda scaling: scaling.min <= scaling.max,
            message="min must not be greater than max, which is 1 unless given",
        ),
        Rule(
            cel="!has(self.activationTimeout) || duration(self.activationTimeout) > duration('0s')",
            holds=lambda scaling: scaling.activation_timeout.nanoseconds > 0,
            message="activationTimeout must be a duration greater than zero, such as 5m",
        ),
        Rule(
            cel="!has(self.drainTimeout) || duration(self.drainTimeout) >= duration('0s')",
            holds=lambda scaling: scaling.drain_timeout.nanoseconds >= 0,
            message="drainTimeout must be a duration that is not negative, such as 2m",
        ),
        Rule(
            # Added to the epoch, because a comparison of text costs more than the API server allows a rule.
            # The v0.4 alpha stored any text here: the match makes the rule false of what is no duration. If
            # it failed instead, the API server would refuse every status of such an object.
            cel="!has(self.scaleDownStabilization) || "
            f"(self.scaleDownStabilization.matches('{_GO_DURATION}') && "
            "duration(self.scaleDownStabilization) >= duration('0s') && "
            "duration(self.scaleDownStabilization) <= duration('1h') && "
            "timestamp(0) + duration(self.scaleDownStabilization) == "
            "timestamp(duration(self.scaleDownStabilization).getSeconds()))",
            holds=lambda scaling: (
                0 <= scaling.scale_down_stabilization.nanoseconds <= _HOUR
                and scaling.scale_down_stabilization.nanoseconds % _SECOND == 0
            ),
            message="scaleDownStabilization must be a duration of whole seconds from 0s to 1h",
        ),
    )

    min: Annotated[Int32, Field(ge=0)] = Field(
        default=0, description="Replicas that run even without demand."
    )
    max: AtLeastOne = Field(default=1, description="Replicas that run at most.")
    metric: ScalingMetric = Field(
        default=ScalingMetric.QUEUE_DEPTH,
        description="What demand is measured by. kvCacheUtil is reserved: a service that uses it is "
        "reported as degraded.",
    )
    target: AtLeastOne = Field(
        default=10, description="Requests, waiting and in flight, that one replica should have."
    )
    activation_timeout: GoDuration = Field(
        default=GoDuration("5m"),
        description="How long a request waits for the first replica, and how long demand outlives its "
        "client.",
    )
    scale_down_stabilization: GoDuration = Field(
        default=GoDuration("5m"),
        description="How long demand must be gone before replicas are removed: whole seconds from 0s to 1h.",
    )
    drain_timeout: GoDuration = Field(
        default=GoDuration("2m"),
        description="How long a replica that is being removed may finish its requests, if the runtime "
        "drains.",
    )
    external_scaler: ExternalScaler | None = Field(
        default=None, description="Settings of the endpoint that KEDA asks for demand."
    )


class ComputeResources(KubeModel):
    """Amounts of CPU and memory."""

    cpu: Quantity | None = Field(default=None, description="CPU cores, for example 500m.")
    memory: Quantity | None = Field(default=None, description="Memory in bytes, for example 256Mi.")


def _within(request: Quantity | None, limit: Quantity | None) -> bool:
    return request is None or limit is None or request.amount <= limit.amount


def _request_within_limit(name: Literal["cpu", "memory"]) -> Rule:
    """Kubernetes refuses a Pod that requests more than its limit; here the service itself is refused."""
    request, limit = f"self.requests.{name}", f"self.limits.{name}"
    return Rule(
        cel=f"!has(self.requests) || !has(self.limits) || !has({request}) || !has({limit}) || "
        f"!quantity(string({request})).isGreaterThan(quantity(string({limit})))",
        holds=lambda resources: (
            resources.requests is None
            or resources.limits is None
            or _within(getattr(resources.requests, name), getattr(resources.limits, name))
        ),
        message=f"requests.{name} must not be greater than limits.{name}",
    )


class GatewayResources(KubeModel):
    """Resources of each gateway container."""

    rules: ClassVar = (_request_within_limit("cpu"), _request_within_limit("memory"))

    requests: ComputeResources | None = Field(default=None, description="What is reserved.")
    limits: ComputeResources | None = Field(default=None, description="What may be used at most.")


class SecretKeyRef(KubeModel):
    """One key of a Secret in the namespace of the service."""

    name: NonEmpty = Field(description="Name of the Secret.")
    key: NonEmpty = Field(
        description="Key that holds the API keys, one a line. After a key may stand name=, rpm= and "
        "concurrent=, separated by blanks: what logs and metrics call it, and its own limits."
    )


class KeyLimits(KubeModel):
    """What each API key may do at one gateway replica, unless its line in the Secret says otherwise."""

    requests_per_minute: KeyLimit | None = Field(
        default=None, description="Requests a minute, as many of them at once; no limit if absent."
    )
    concurrent_requests: KeyLimit | None = Field(
        default=None, description="Requests at a time, waiting and in flight; no limit if absent."
    )


class Authentication(KubeModel):
    """What clients must present."""

    secret_ref: SecretKeyRef = Field(
        description="Secret with the accepted API keys. A changed Secret takes effect without a restart."
    )
    limits: KeyLimits | None = Field(
        default=None, description="Limits of each key; requests above them are refused with 429."
    )


class ColdStart(KubeModel):
    """What happens to requests while no backend is ready."""

    rules: ClassVar = (
        Rule(
            cel="!has(self.heartbeatInterval) || duration(self.heartbeatInterval) > duration('0s')",
            holds=lambda cold_start: cold_start.heartbeat_interval.nanoseconds > 0,
            message="heartbeatInterval must be a duration greater than zero, such as 10s",
        ),
    )

    mode: ColdStartMode = Field(
        default=ColdStartMode.KEEPALIVE,
        description="keepalive holds a request until the backend is ready; reject answers 503 at once.",
    )
    heartbeat_interval: GoDuration = Field(
        default=GoDuration("10s"), description="Time between the comments that keep a held stream alive."
    )
    heartbeats: Bool = Field(
        default=True,
        description="Whether held streams get heartbeats. Without them nothing is sent before the backend "
        "answers.",
    )
    progress: Bool = Field(
        default=False,
        description="Whether heartbeats say how far the cold start has come. A request decides for itself "
        "with the header x-noctaya-progress.",
    )


class Endpoint(KubeModel):
    """The gateway that clients talk to."""

    openai_compatible: Bool = Field(
        default=True,
        alias="openAICompatible",
        description="Whether the backend speaks the OpenAI API. For information only.",
    )
    max_queue: AtLeastOne = Field(
        default=100, description="Requests, waiting and in flight, that one gateway replica admits."
    )
    resources: GatewayResources | None = Field(
        default=None, description="Resources of each gateway container."
    )
    authentication: Authentication | None = Field(
        default=None, description="API keys that clients must present; open to everybody if absent."
    )
    cold_start: ColdStart = Field(
        default=ColdStart(), description="What happens to requests while no backend is ready."
    )
    access_log: AccessLog = Field(
        default=AccessLog.COLD,
        description="Which requests get a line on the gateway's standard output: all, cold (those that "
        "waited or failed), errors (those that failed) or none.",
    )
