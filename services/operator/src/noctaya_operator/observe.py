"""What the caches show of one service, in one value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from noctaya_api import names
from noctaya_api.v1alpha1.llmservice_status import PrewarmStatus

from noctaya_operator.autoscaling_state import AutoscalingState, classify_autoscaling
from noctaya_operator.caches import Caches
from noctaya_operator.diagnose import BackendState, Finding, active, condition_of, diagnose_backend
from noctaya_operator.kube.objects import Key, Object, controlled_by, deleting, labels_of
from noctaya_operator.kube.resources import ENDPOINT_SLICES, HPAS, PODS
from noctaya_operator.live_objects import LiveObjects
from noctaya_operator.object_names import ObjectNames
from noctaya_operator.plan import ServicePlan
from noctaya_operator.prewarm_gate import holds_back
from noctaya_operator.prewarm_progress import init_container_runs, prewarm_status
from noctaya_operator.prewarm_report import Report
from noctaya_operator.prewarm_state import JobState, job_state

SLICE_SERVICE = "kubernetes.io/service-name"
"""Label of an EndpointSlice that names its Service."""

UNRESOLVED = (
    "the download did not tell which digest the tag stands for; delete the Job to have it resolved again"
)


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
    asleep: bool = False
    """Whether it is kept at zero because somebody wants it to sleep."""
    ending: int = 0
    """Pods of the backend that go away and are not gone."""
    notes: tuple[str, ...] = ()
    """What else is to be said about the service."""

    def with_notes(self, notes: Iterable[str]) -> Observation:
        """The same, with more to say."""
        return replace(self, notes=(*self.notes, *notes))

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

    def observe(
        self,
        plan: ServicePlan,
        *,
        replacing: bool = False,
        told: Report | None = None,
        before: PrewarmStatus | None = None,
    ) -> Observation:
        """The service as it is now.

        Args:
            plan: the service as decided.
            replacing: whether its download or its claim is being replaced.
            told: what the prewarm agent answered.
            before: what the status said of the download.
        """
        backend, scaled_object = self.backend(plan), self._live.cached(plan.names.scaled_object)
        held = self.holds_back(plan) or (replacing and backend.ready == 0)
        job = self._live.cached(plan.names.prewarm_job) if plan.prewarm is not None else None
        if replacing or (job is not None and deleting(job)):
            job = None
        pods = self.prewarm_pods(plan.names, job)
        scaler = plan.names.scaler if plan.aggregated else plan.names.gateway
        prewarm = prewarm_status(job, pods, told=told, before=before) if plan.prewarm is not None else None
        if prewarm is not None and job_state(job) is JobState.COMPLETE and plan.source.tag:
            prewarm = prewarm.model_copy(update={"message": UNRESOLVED})
        return Observation(
            backend=backend,
            finding=diagnose_backend(backend),
            autoscaling=classify_autoscaling(
                scaled_object,
                self._hpa(plan.names, scaled_object),
                scaler=scaler.key.name,
                held=held or plan.wish.asleep,
            ),
            attached=scaled_object is not None,
            demanded=condition_of(scaled_object, "Active").get("status") == "True",
            prewarm=prewarm,
            prewarm_pods=sum(map(active, pods)),
            job=job_state(job),
            held=held,
            asleep=plan.wish.asleep,
            ending=self._ending(plan.names),
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

    def _ending(self, named: ObjectNames) -> int:
        return sum(
            1
            for pod in self._caches.of_service(PODS, _key(named))
            if deleting(pod)
            and names.LABEL_RUNTIME in labels_of(pod)
            and (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}
        )

    def prewarm_job(self, named: ObjectNames) -> Object | None:
        """The prewarm Job as it is."""
        return self._live.cached(named.prewarm_job)

    def prewarm_address(self, plan: ServicePlan) -> tuple[str, int] | None:
        """Address and port where the agent of a download that runs can be asked how far it is."""
        job = self.prewarm_job(plan.names) if plan.prewarm is not None else None
        if job is None or deleting(job) or job_state(job) is not JobState.RUNNING:
            return None
        for pod in self.prewarm_pods(plan.names, job):
            status = pod.get("status") or {}
            if not status.get("podIP"):
                continue
            if status.get("phase") == "Running":
                return str(status["podIP"]), names.PREWARM_PORT
            if active(pod) and init_container_runs(pod, names.CONTAINER_PULL_PROGRESS):
                return str(status["podIP"]), names.PULL_PROGRESS_PORT
        return None

    def growing_classes(self) -> frozenset[str]:
        """StorageClasses whose volumes can grow."""
        return self._caches.growing_classes()

    def prewarm_pods(self, named: ObjectNames, job: Object | None) -> list[Object]:
        """Pods of the prewarm Job, those that are over too."""
        if job is None:
            return []
        return [
            pod
            for pod in self._caches.of_service(PODS, _key(named))
            if not deleting(pod) and controlled_by(pod, job)
        ]

    def _hpa(self, named: ObjectNames, scaled_object: Object | None) -> Object | None:
        status = (scaled_object or {}).get("status") or {}
        return self._caches.get(HPAS, Key(named.namespace, str(status.get("hpaName") or named.hpa_name)))


def _key(named: ObjectNames) -> Key:
    return Key(named.namespace, named.service)
