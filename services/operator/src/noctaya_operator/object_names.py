"""Names of the objects that belong to one service, in one place.

Planning, reconciling, the check for foreign objects and the clean-up all use this list: an object that is
rendered under a name missing here would escape the collision check.
"""

from __future__ import annotations

from dataclasses import dataclass

from noctaya_api import names

from noctaya_operator.kinds import SCALED_OBJECTS
from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.resources import DEPLOYMENTS, JOBS, PDBS, PVCS, SECRETS, SERVICES, Resource


@dataclass(frozen=True, kw_only=True)
class ObjectRef:
    """One object by kind, namespace and name."""

    resource: Resource
    key: Key

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key}"


@dataclass(frozen=True, kw_only=True)
class ObjectNames:
    """Derived names of one service."""

    service: str
    namespace: str

    @property
    def scaled_object(self) -> ObjectRef:
        """KEDA's intent; also the name its HPA is derived from."""
        return self._ref(SCALED_OBJECTS, self.service)

    @property
    def demand_secret(self) -> ObjectRef:
        """Token of the demand reports."""
        return self._ref(SECRETS, names.demand_auth_secret_name(self.service))

    @property
    def cache_claim(self) -> ObjectRef:
        """Claim that holds the weights."""
        return self._ref(PVCS, names.cache_claim_name(self.service))

    @property
    def prewarm_job(self) -> ObjectRef:
        """One-time download."""
        return self._ref(JOBS, names.prewarm_job_name(self.service))

    @property
    def backend(self) -> ObjectRef:
        """Deployment of the engine."""
        return self._ref(DEPLOYMENTS, self.service)

    @property
    def backend_service(self) -> ObjectRef:
        """Service in front of the engine."""
        return self._ref(SERVICES, names.backend_service_name(self.service))

    @property
    def backend_pods(self) -> ObjectRef:
        """Headless Service whose addresses are the engine's Pods."""
        return self._ref(SERVICES, names.backend_pods_service_name(self.service))

    @property
    def gateway(self) -> ObjectRef:
        """Deployment of the gateway."""
        return self._ref(DEPLOYMENTS, names.gateway_name(self.service))

    @property
    def public_service(self) -> ObjectRef:
        """Service that clients use."""
        return self._ref(SERVICES, self.service)

    @property
    def gateway_pdb(self) -> ObjectRef:
        """Disruption budget of several gateways."""
        return self._ref(PDBS, names.gateway_name(self.service))

    @property
    def scaler(self) -> ObjectRef:
        """Deployment of the aggregate scaler."""
        return self._ref(DEPLOYMENTS, names.scaler_name(self.service))

    @property
    def scaler_service(self) -> ObjectRef:
        """Service that KEDA dials."""
        return self._ref(SERVICES, names.scaler_name(self.service))

    @property
    def hpa_name(self) -> str:
        """Name of the HorizontalPodAutoscaler that KEDA makes for the ScaledObject; never ours to write."""
        return f"keda-hpa-{self.service}"

    def all(self) -> tuple[ObjectRef, ...]:
        """Every object the service may ever have, whatever its spec and the operator's settings say."""
        return (
            self.scaled_object,
            self.demand_secret,
            self.cache_claim,
            self.prewarm_job,
            self.backend,
            self.backend_service,
            self.backend_pods,
            self.gateway,
            self.public_service,
            self.gateway_pdb,
            self.scaler,
            self.scaler_service,
        )

    def host(self, service: ObjectRef) -> str:
        """Name under which Pods of the cluster reach one of the Services, without the cluster domain."""
        return f"{service.key.name}.{self.namespace}.svc"

    def _ref(self, resource: Resource, name: str) -> ObjectRef:
        return ObjectRef(resource=resource, key=Key(self.namespace, name))
