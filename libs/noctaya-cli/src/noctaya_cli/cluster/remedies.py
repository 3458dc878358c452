"""What each condition reason means and what to do about it.

One table serves `noctaya explain`, `noctaya status` and docs/troubleshooting.md, which is generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from noctaya_api.conditions import KeepReason, ObservationReason, Reason, StepReason


class CommandReason(StrEnum):
    """What `noctaya` finds itself, asking gateways, scalers and the cluster; no condition has these."""

    QUEUE_FULL = "QueueFull"
    KEDA_NOT_LISTENING = "KedaNotListening"
    CERTIFICATE = "CertificateUnusable"


QUEUE_FULL: Final = CommandReason.QUEUE_FULL
KEDA_NOT_LISTENING: Final = CommandReason.KEDA_NOT_LISTENING
CERTIFICATE: Final = CommandReason.CERTIFICATE


@dataclass(frozen=True, slots=True)
class Remedy:
    """Advice on one reason."""

    meaning: str
    action: str


_WRITE: Final = Remedy(
    "The API server refused an object that the operator wrote; the message has its answer.",
    "Read the message: a missing right (install the chart's RBAC again), an admission policy, a quota, or"
    " an object changed by hand. The operator tries again by itself.",
)

REMEDIES: Final[dict[str, Remedy]] = {
    Reason.PREWARMING: Remedy(
        "The weights are being downloaded; the service stays at zero until they are complete.",
        "Wait. `status.prewarm` has bytes and rate; `kubectl logs job/SERVICE-prewarm` says more.",
    ),
    Reason.PENDING: Remedy(
        "No replica was started yet.",
        "Look at AutoscalingReady: without it nothing starts replicas.",
    ),
    Reason.SCALER_NOT_READY: Remedy(
        "No Pod answers KEDA for this service, so no ScaledObject was made yet.",
        "Look at the Pods of Deployment SERVICE-scaler, or SERVICE-gateway with one gateway: image, node,"
        " TLS files.",
    ),
    Reason.SCALED_OBJECT_NOT_READY: Remedy(
        "KEDA can't use the ScaledObject.",
        "The message is KEDA's. Usually its operator can't reach SERVICE-scaler on port 9090: a "
        "NetworkPolicy, mTLS on one side only, an expired certificate.",
    ),
    Reason.SCALED_OBJECT_PAUSED: Remedy(
        "Somebody paused the ScaledObject, so demand changes nothing.",
        "Remove the annotation named in the message from the ScaledObject.",
    ),
    Reason.HPA_NOT_READY: Remedy(
        "The HorizontalPodAutoscaler that KEDA made does not get its metric.",
        "Check KEDA's metrics API: `kubectl get apiservice v1beta1.external.metrics.k8s.io`, then KEDA's "
        "logs.",
    ),
    Reason.FALLBACK_METRIC: Remedy(
        "Replicas follow another metric than the demand of the service.",
        "Look for a fallback in the ScaledObject and for a HorizontalPodAutoscaler made by somebody else.",
    ),
    KeepReason.ASLEEP: Remedy(
        "Somebody put the service to sleep: no replica runs and requests are refused.",
        "`noctaya unpin SERVICE` lets demand decide again, `noctaya wake SERVICE` brings it up at once.",
    ),
    KeepReason.FALLING_ASLEEP: Remedy(
        "Somebody put the service to sleep, and its last replicas still finish their requests.",
        "Wait: `spec.scaling.drainTimeout` bounds it.",
    ),
    KeepReason.WAKING: Remedy(
        "Replicas are kept without demand, and not all of them are ready yet.",
        "Wait; the other conditions say what keeps them.",
    ),
    KeepReason.INVALID: Remedy(
        "The annotation `serving.noctaya.io/keep` can't be read and changes nothing.",
        "`noctaya unpin SERVICE` removes it; `noctaya wake`, `pin` and `sleep` write it right.",
    ),
    ObservationReason.PROGRESS_DEADLINE_EXCEEDED: Remedy(
        "The backend did not become ready within the time its startup probe allows.",
        "If the model needs longer, raise `health.startup.failureThreshold` of the runtime; else read the"
        " engine's log.",
    ),
    ObservationReason.IMAGE_PULL_FAILED: Remedy(
        "An image can't be pulled.",
        "Correct `container.image` of the runtime, add a pull Secret to `spec.imagePullSecrets`, or load "
        "the image on the node.",
    ),
    ObservationReason.OOM_KILLED: Remedy(
        "The engine used more memory than `spec.resources.memory` and was killed.",
        "Raise `spec.resources.memory`, or lower the engine's context length or batch size.",
    ),
    ObservationReason.CRASH_LOOP_BACK_OFF: Remedy(
        "The engine starts and dies again and again.",
        "`kubectl logs -c serving --previous POD` has its last words. Usual causes: a wrong argument, a "
        "model the engine doesn't know, a missing driver.",
    ),
    ObservationReason.CONTAINER_RESTARTING: Remedy(
        "The engine was restarted more than once.",
        "`kubectl logs -c serving --previous POD`; a liveness probe that is too strict also looks like this.",
    ),
    ObservationReason.INIT_CONTAINER_FAILED: Remedy(
        "Something that has to run before the engine failed.",
        "`kubectl logs -c wait-for-prewarm POD`: the weights in the cache are missing or of another source.",
    ),
    ObservationReason.QUOTA_EXCEEDED: Remedy(
        "A ResourceQuota of the namespace leaves no room for the Pod.",
        "Raise the quota, or lower `spec.resources` or `spec.scaling.max`.",
    ),
    ObservationReason.POD_SECURITY_DENIED: Remedy(
        "The engine asks for more than the Pod Security of the namespace gives, or its image starts as root "
        "where the runtime forbids that.",
        "Set `podSecurity.level: restricted` in the InferenceRuntime, and `runAsUser` if its image starts "
        "as root; or let the namespace enforce `baseline`. Directories of the node (HostPath caches, Ascend) "
        "take `privileged`.",
    ),
    ObservationReason.ADMISSION_DENIED: Remedy(
        "An admission policy refused the Pod.",
        "The message names the policy. Change the policy, or the runtime so that its Pods pass.",
    ),
    ObservationReason.STORAGE_CLASS_MISSING: Remedy(
        "The cache claim asks for a StorageClass that doesn't exist, or there is no default one.",
        "Set `spec.cache.storageClassName` to one of `kubectl get storageclass`, then "
        "`spec.cache.replace: true` or delete the claim SERVICE-cache.",
    ),
    ObservationReason.SCHEDULING_DELAYED: Remedy(
        "No node has room for the Pod.",
        "The message is the scheduler's: free an accelerator (`noctaya status -A` shows who holds one), "
        "add a node, or correct the runtime's `nodeSelector` and `tolerations`.",
    ),
    ObservationReason.MODEL_LOADING: Remedy(
        "The engine runs and is not ready: it loads the model.",
        "Wait; `noctaya explain SERVICE` shows how long former loads took.",
    ),
    ObservationReason.STARTING: Remedy(
        "The Pod is being started.",
        "Wait.",
    ),
    ObservationReason.ACTIVATING: Remedy(
        "A replica was asked for and no Pod exists yet.",
        "Wait.",
    ),
    StepReason.INVALID_SPEC: Remedy(
        "The object breaks a rule; it was stored by an older version of the CRD.",
        "Correct the field that the message names.",
    ),
    StepReason.NAME_CONFLICT: Remedy(
        "An object with a name this service needs belongs to somebody else; it was not touched.",
        "Rename the service, or remove the object named in the message.",
    ),
    StepReason.RUNTIME_RESOLUTION: Remedy(
        "No InferenceRuntime fits `spec.runtime`, or two fit equally well.",
        "`kubectl get inferenceruntimes`; create one, or pin it with `spec.runtime.name`.",
    ),
    StepReason.UNSUPPORTED_VENDOR: Remedy(
        "The runtime's vendor is not known to this version.",
        "Correct `spec.vendor` of the runtime.",
    ),
    StepReason.MODEL_RESOLUTION: Remedy(
        "`spec.model` can't be resolved.",
        "Correct `spec.model.source.uri`; docs/contracts.md has the forms.",
    ),
    StepReason.SCALED_OBJECT: Remedy(
        "A value of `spec.scaling` can't work.",
        "Correct what the message names.",
    ),
    StepReason.RENDER: Remedy(
        "The backend can't be rendered: a template or a reserved field.",
        "Correct the argument or field that the message names, in the service or in the runtime.",
    ),
    StepReason.GATEWAY_CONFIG: Remedy(
        "A setting of the operator for gateways can't work.",
        "Correct `image.gateway` or `gateway.replicas` of the chart.",
    ),
    StepReason.CACHE: Remedy(
        "`spec.cache` can't work, or differs from the claim that exists.",
        "Go back to the former value, or set `spec.cache.replace: true` to make the cache anew.",
    ),
    StepReason.PREWARM: Remedy(
        "The download can't be set up as asked.",
        "Give the service a cache that keeps a volume.",
    ),
    StepReason.PREWARM_FAILED: Remedy(
        "The weights could not be brought into the cache. A backend that already serves goes on.",
        "The message has the agent's reason: a token for a gated model, a wrong revision, no space. "
        "Correct it. A download that the service can't do without is tried again by itself, after as long as "
        "it had tried (30 s to 1 h), and goes on where it stopped; `kubectl delete job SERVICE-prewarm` has "
        "it tried at once.",
    ),
    StepReason.AUTOSCALING_UNAVAILABLE: Remedy(
        "KEDA is not installed: the API has no ScaledObject.",
        "Install KEDA; the operator goes on within a minute.",
    ),
    QUEUE_FULL: Remedy(
        "Further requests are refused with 429 `queue_full`.",
        "Raise `spec.scaling.max` if replicas are busy, `spec.endpoint.maxQueue` if they are only starting.",
    ),
    KEDA_NOT_LISTENING: Remedy(
        "Requests are held, or would be, and nobody who could start a replica hears of it.",
        "`noctaya doctor` says whether KEDA runs; else a NetworkPolicy on port 9090, or mTLS on one side.",
    ),
    CERTIFICATE: Remedy(
        "KEDA refuses the scaler because of it, and nothing starts.",
        "Renew the Secret of `spec.scaling.externalScaler.tls.serverSecretName`; it is taken up by itself "
        "within a minute or so.",
    ),
    StepReason.DEMAND_AUTHENTICATION: Remedy(
        "The Secret between gateways and scaler can't be used.",
        "Delete the Secret SERVICE-demand-auth; it is made anew.",
    ),
}


def remedy(reason: str) -> Remedy | None:
    """Advice on a reason; None when nothing has to be done."""
    found = REMEDIES.get(reason)
    if found is None and reason in _WRITING:
        return _WRITE
    return found


_WRITING: Final = frozenset(
    str(step) for step in StepReason if step.value.startswith(("Apply", "Delete", "Observe"))
)
"""Steps that write or read objects: what went wrong is the API server's answer."""
