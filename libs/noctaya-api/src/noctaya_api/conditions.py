"""Vocabulary of LLMService status: phases, condition types, condition reasons, event reasons.

Alerts and scripts match on these words, so they are contract; the messages beside them are not.
"""

from enum import StrEnum


class Phase(StrEnum):
    """One-word summary of a service."""

    PENDING = "Pending"
    PREWARMING = "Prewarming"
    LOADING = "Loading"
    READY = "Ready"
    SCALED_TO_ZERO = "ScaledToZero"
    DEGRADED = "Degraded"


class ConditionType(StrEnum):
    """The three conditions every reconciled service carries, and one of services that are kept."""

    READY = "Ready"
    DEGRADED = "Degraded"
    AUTOSCALING_READY = "AutoscalingReady"
    # Not in the v0.4 alpha: whether the service is as its annotation `keep` asks; absent without it
    KEPT = "Kept"


class RuntimeConditionType(StrEnum):
    """The condition of an InferenceRuntime."""

    USABLE = "Usable"


class RuntimeReason(StrEnum):
    """Reasons of `Usable`; when False it can also be the step at which planning with the runtime fails."""

    VALID = "Valid"


class ConditionStatus(StrEnum):
    """Tri-state of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Reasons of a pass in which every object was rendered and applied."""

    SCALED_OBJECT_APPLIED = "ScaledObjectApplied"
    AVAILABLE = "Available"
    SCALED_TO_ZERO = "ScaledToZero"
    PENDING = "Pending"
    INACTIVE = "Inactive"
    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    # Not in the v0.4 alpha
    PREWARMING = "Prewarming"
    SCALER_NOT_READY = "ScalerNotReady"
    SCALED_OBJECT_NOT_READY = "ScaledObjectNotReady"
    SCALED_OBJECT_PAUSED = "ScaledObjectPaused"
    HPA_NOT_READY = "HorizontalPodAutoscalerNotReady"
    FALLBACK_METRIC = "FallbackMetric"


class KeepReason(StrEnum):
    """Reasons of `Kept`; `Asleep` is one of `Ready` too."""

    AWAKE = "Awake"
    WAKING = "Waking"
    ASLEEP = "Asleep"
    FALLING_ASLEEP = "FallingAsleep"
    INVALID = "InvalidKeep"


class ObservationReason(StrEnum):
    """What the backend's Deployment and Pods show, in order of precedence."""

    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    OOM_KILLED = "OOMKilled"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    CONTAINER_RESTARTING = "ContainerRestarting"
    # Not in the v0.4 alpha: failures outside the serving container
    INIT_CONTAINER_FAILED = "InitContainerFailed"
    QUOTA_EXCEEDED = "QuotaExceeded"
    POD_SECURITY_DENIED = "PodSecurityDenied"
    ADMISSION_DENIED = "AdmissionDenied"
    STORAGE_CLASS_MISSING = "StorageClassMissing"
    SCHEDULING_DELAYED = "SchedulingDelayed"
    MODEL_LOADING = "ModelLoading"
    STARTING = "Starting"
    ACTIVATING = "Activating"

    @property
    def hard(self) -> bool:
        """Whether the backend can't become ready without somebody acting, as opposed to needing time."""
        return self not in _SOFT


_SOFT = frozenset(
    {
        ObservationReason.SCHEDULING_DELAYED,
        ObservationReason.MODEL_LOADING,
        ObservationReason.STARTING,
        ObservationReason.ACTIVATING,
    }
)


class StepReason(StrEnum):
    """The step at which a pass failed, in the order the steps are taken."""

    # Not in the v0.4 alpha: the object itself can't be read, or its names belong to somebody else
    INVALID_SPEC = "InvalidSpec"
    NAME_CONFLICT = "NameConflict"
    # Planning
    RUNTIME_RESOLUTION = "RuntimeResolution"
    UNSUPPORTED_VENDOR = "UnsupportedVendor"
    MODEL_RESOLUTION = "ModelResolution"
    # Rendering; nothing is written before all of it succeeded
    SCALED_OBJECT = "ScaledObject"
    RENDER = "Render"
    GATEWAY_CONFIG = "GatewayConfig"
    CACHE = "Cache"
    PREWARM = "Prewarm"
    DEMAND_AUTHENTICATION = "DemandAuthentication"
    # Applying
    AUTOSCALING_UNAVAILABLE = "AutoscalingUnavailable"
    APPLY_SCALED_OBJECT = "ApplyScaledObject"
    APPLY_DEMAND_AUTHENTICATION = "ApplyDemandAuthentication"
    APPLY_CACHE_PVC = "ApplyCachePVC"
    APPLY_PREWARM_JOB = "ApplyPrewarmJob"
    APPLY_DEPLOYMENT = "ApplyDeployment"
    APPLY_BACKEND_SERVICE = "ApplyBackendService"
    APPLY_GATEWAY = "ApplyGateway"
    APPLY_GATEWAY_SERVICE = "ApplyGatewayService"
    APPLY_GATEWAY_PDB = "ApplyGatewayPodDisruptionBudget"
    DELETE_GATEWAY_PDB = "DeleteGatewayPodDisruptionBudget"
    APPLY_GATEWAY_SCALER = "ApplyGatewayScaler"
    APPLY_GATEWAY_SCALER_SERVICE = "ApplyGatewayScalerService"
    DELETE_GATEWAY_SCALER = "DeleteGatewayScaler"
    DELETE_DEMAND_AUTHENTICATION = "DeleteDemandAuthentication"
    # Not in the v0.4 alpha, which left the Job of a service that no longer prewarms
    DELETE_PREWARM_JOB = "DeletePrewarmJob"
    # Observing
    OBSERVE_PREWARM_JOB = "ObservePrewarmJob"
    PREWARM_FAILED = "PrewarmFailed"
    OBSERVE_BACKEND_DEPLOYMENT = "ObserveBackendDeployment"
    OBSERVE_BACKEND_PODS = "ObserveBackendPods"


class EventReason(StrEnum):
    """Reasons of Events that are not themselves an observation reason."""

    BACKEND_RECOVERED = "BackendRecovered"
    # Not in the v0.4 alpha
    ACTIVATED = "Activated"
    KEPT_AWAKE = "KeptAwake"
    KEPT_ASLEEP = "KeptAsleep"
    KEEP_ENDED = "KeepEnded"


class EventAction(StrEnum):
    """Actions of Events about a service."""

    OBSERVE_BACKEND_FAILURE = "ObserveBackendFailure"
    OBSERVE_BACKEND_RECOVERY = "ObserveBackendRecovery"
    # Not in the v0.4 alpha
    REPORT_STATUS = "ReportStatus"
    OBSERVE_ACTIVATION = "ObserveActivation"
    OBSERVE_KEEP = "ObserveKeep"
