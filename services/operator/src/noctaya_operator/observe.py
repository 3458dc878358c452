"""What the caches show of one service, in one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from noctaya_api import names
from noctaya_api.v1alpha1.llmservice_status import PrewarmStatus

from noctaya_operator.autoscaling_state import AutoscalingState, classify_autoscaling
from noctaya_operator.caches import Caches
from noctaya_operator.diagnose import BackendState, Finding, active, condition_of, diagnose_backend
from noctaya_operator.kube.objects import Key, Object, labels_of
from noctaya_operator.kube.resources import ENDPOINT_SLICES, HPAS, PODS
from noctaya_operator.live_objects import LiveObjects
from noctaya_operator.object_names import ObjectNames
from noctaya_operator.plan import ServicePlan
from noctaya_operator.prewarm_gate import JobState, holds_back, job_state
from noctaya_operator.prewarm_progress import prewarm_status

SLICE_SERVICE = "kubernetes.io/service-name"
"""Label of an EndpointSlice that names its Service."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One service as it is."""

    backend: BackendState
    finding: Finding
    autoscaling: AutoscalingState
    attached: bool
    """Whether the ScaledObject is there."""
    demanded: bool
    """Whether KEDA sees demand."""
    prewarm: PrewarmStatus | None
    prewarm_pods: int
    """Active Pods of the prewarm Job."""
    job: JobState
    held: bool
    """Whether the backend is kept at zero until the weights are there."""

    def with_trouble(self, why: str | None) -> Observation:
        """The same, with what keeps the download from going on."""
        if why is None or self.prewarm is None:
            return self
        return replace(self, prewarm=self.prewarm.model_copy(update={"message": why}))


class Observer:
    """Reads the state of services from the caches.

    Args:
        caches: what is watched.
        live: the newest known of the objects of a service.
    """

    def __init__(self, caches: Caches, live: LiveObjects) -> None:
        self._caches = caches
        self._live = live

    def observe(self, plan: ServicePlan) -> Observation:
        """The service as it is now."""
        backend, scaled_object = self.backend(plan), self._live.cached(plan.names.scaled_object)
        held = self.holds_back(plan)
        job = self._live.cached(plan.names.prewarm_job) if plan.prewarm is not None else None
        prewarm_pods = self._prewarm_pods(plan)
        scaler = plan.names.scaler if plan.aggregated else plan.names.gateway
        return Observation(
            backend=backend,
            finding=diagnose_backend(backend),
            autoscaling=classify_autoscaling(
                scaled_object,
                self._hpa(plan.names, scaled_object),
                scaler=scaler.key.name,
                held=held,
            ),
            attached=scaled_object is not None,
            demanded=condition_of(scaled_object, "Active").get("status") == "True",
            prewarm=prewarm_status(job, prewarm_pods) if plan.prewarm is not None else None,
            prewarm_pods=len(prewarm_pods),
            job=job_state(job),
            held=held,
        )

    def backend(self, plan: ServicePlan) -> BackendState:
        """The backend as it is now."""
        pods = self._pods(plan.names)
        return BackendState(
            names=plan.names,
            deployment=self._live.cached(plan.names.backend),
            pods=[pod for pod in pods if labels_of(pod).get(names.LABEL_RUNTIME) == plan.runtime.name],
            claim=self._live.cached(plan.names.cache_claim),
            storage_classes=self._caches.storage_classes(),
        )

    def holds_back(self, plan: ServicePlan) -> bool:
        """Whether the backend has to stay at zero because its weights are not there."""
        if plan.prewarm is None:
            return False
        job = self._live.cached(plan.names.prewarm_job)
        return holds_back(plan, job=job, serving_replicas=self.backend(plan).ready)

    def scaler_answers(self, plan: ServicePlan) -> bool:
        """Whether a Pod behind the scaler's Service is ready, by its EndpointSlices."""
        wanted = plan.names.scaler_service.key
        for each in self._caches.of_service(ENDPOINT_SLICES, _key(plan.names)):
            serves = any(port.get("name") == names.GRPC_PORT_NAME for port in each["ports"])
            if labels_of(each).get(SLICE_SERVICE) == wanted.name and serves and each["readyEndpoints"]:
                return True
        return False

    def gateway_pods(self, plan: ServicePlan) -> Sequence[Object]:
        """Active gateway Pods."""
        return [
            pod
            for pod in self._caches.of_service(PODS, _key(plan.names))
            if active(pod) and labels_of(pod).get(names.LABEL_GATEWAY) == plan.names.service
        ]

    def _pods(self, named: ObjectNames) -> list[Object]:
        return [
            pod
            for pod in self._caches.of_service(PODS, _key(named))
            if active(pod) and labels_of(pod).get(names.LABEL_LLMSERVICE) == named.service
        ]

    def _prewarm_pods(self, plan: ServicePlan) -> list[Object]:
        job = plan.names.prewarm_job.key.name
        return [
            pod
            for pod in self._pods(plan.names)
            if labels_of(pod).get("batch.kubernetes.io/job-name", labels_of(pod).get("job-name")) == job
        ]

    def _hpa(self, named: ObjectNames, scaled_object: Object | None) -> Object | None:
        status = (scaled_object or {}).get("status") or {}
        return self._caches.get(HPAS, Key(named.namespace, str(status.get("hpaName") or named.hpa_name)))


def _key(named: ObjectNames) -> Key:
    return Key(named.namespace, named.service)
