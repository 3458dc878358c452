"""Everything that is decided about one service, once, before anything is rendered or written.

`plan_service` is pure and raises `PlanError` for whatever can't work, in the order of the step reasons of the
contract; so renderers never fail, and a service that can't be rendered as a whole changes nothing in the
cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from noctaya_api.conditions import StepReason
from noctaya_api.model_source import ModelSource, ModelSourceError
from noctaya_api.runtime_selection import RuntimeSelectionError, select_runtime
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.llmservice_delivery import CacheStrategy

from noctaya_operator import precedent as precedents
from noctaya_operator.accelerators import Accelerator, check_vendor, plan_accelerator
from noctaya_operator.cache_volume import Cache, check_level, check_strategy, keeps_weights, plan_cache
from noctaya_operator.defaults import Defaults, Images
from noctaya_operator.object_names import ObjectNames, ObjectRef
from noctaya_operator.plan_error import PlanError
from noctaya_operator.precedent import Precedent
from noctaya_operator.scaling import ScalingIntent, plan_scaling
from noctaya_operator.serving import Serving, plan_serving
from noctaya_operator.weights import (
    Prewarm,
    check_token,
    engine_reads,
    is_required,
    plan_prewarm,
    way_of,
    weights_directory,
)
from noctaya_operator.wish import NOTHING, Wish

__all__ = ["Obsolete", "PlanError", "ServicePlan", "plan_service"]


@dataclass(frozen=True, kw_only=True)
class Obsolete:
    """An object this plan has no use for: to be deleted if it is there and controlled by the service."""

    ref: ObjectRef
    step: StepReason


@dataclass(frozen=True, kw_only=True)
class ServicePlan:
    """One service, decided."""

    service: LLMService
    runtime: InferenceRuntime
    source: ModelSource
    names: ObjectNames
    images: Images
    gateways: int
    """Gateway replicas, at least 1; above 1 demand is summed by an aggregate scaler."""
    tracing: tuple[tuple[str, str], ...]
    """Environment of traces; empty for none."""
    traces_headers_secret: str
    """Secret with headers for their collector; empty for none."""
    scaling: ScalingIntent
    accelerator: Accelerator
    serving: Serving
    cache: Cache | None
    prewarm: Prewarm | None
    wish: Wish
    """What is wanted beside the spec."""
    node: str
    """Node whose directory holds the weights; empty when they can be had everywhere, or are nowhere yet."""

    @property
    def aggregated(self) -> bool:
        """Whether several gateways report to an aggregate scaler."""
        return self.gateways > 1

    @property
    def kept_on_one_node(self) -> bool:
        """Whether replicas must share a node, because the cache can't be mounted on a second one."""
        return self.cache is not None and self.cache.one_node and self.scaling.maximum > 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What works but may surprise, for the service's conditions."""
        found: list[str] = []
        if self.kept_on_one_node:
            found.append(
                f"up to {self.scaling.maximum} replicas share the claim {self.names.cache_claim.key.name}, "
                "which one node at a time can mount, so all of them run on that node; set cache.strategy to "
                "SharedPVC, HostPath or None to spread them"
            )
        if self.serving.revision_unsaid:
            found.append(
                f"nothing tells an engine of the family {self.runtime.spec.family} the revision "
                f"{self.source.revision!r}; pass it in runtime.argsOverride"
            )
        if self.node and self.scaling.maximum > 1:
            found.append(
                f"the weights are in a directory of node {self.node}, so all replicas run there; set "
                "cache.strategy to SharedPVC to spread them"
            )
        source = self.service.spec.model.source
        if source is not None and source.files is not None and self.prewarm is None:
            found.append("model.source.files is only used when weights are prewarmed; set cache.prewarm")
        return tuple(found)

    def owned_names(self) -> tuple[ObjectRef, ...]:
        """Every object the service may ever have; none of them may belong to somebody else."""
        return self.names.all()

    def wanted_names(self) -> tuple[ObjectRef, ...]:
        """The objects this plan renders, in apply order."""
        names, aggregated = self.names, self.aggregated
        optional = (
            (names.scaled_object, True),
            (names.demand_secret, aggregated),
            (names.cache_claim, self.cache is not None and self.cache.claim is not None),
            (names.prewarm_job, self.prewarm is not None),
            (names.backend, True),
            (names.backend_service, True),
            (names.backend_pods, True),
            (names.gateway, True),
            (names.public_service, True),
            (names.gateway_pdb, aggregated),
            (names.scaler, aggregated),
            (names.scaler_service, True),
        )
        return tuple(ref for ref, wanted in optional if wanted)

    def obsolete(self) -> tuple[Obsolete, ...]:
        """What a former plan may have left, in the order to delete it, after everything is applied.

        The cache claim is never among it: weights are data, and go only with the service itself.
        """
        found: list[Obsolete] = []
        if not self.aggregated:
            found += [
                Obsolete(ref=self.names.gateway_pdb, step=StepReason.DELETE_GATEWAY_PDB),
                Obsolete(ref=self.names.scaler, step=StepReason.DELETE_GATEWAY_SCALER),
                Obsolete(ref=self.names.demand_secret, step=StepReason.DELETE_DEMAND_AUTHENTICATION),
            ]
        if self.prewarm is None:
            found.append(Obsolete(ref=self.names.prewarm_job, step=StepReason.DELETE_PREWARM_JOB))
        return tuple(found)


def plan_service(
    service: LLMService,
    *,
    runtimes: Iterable[InferenceRuntime],
    defaults: Defaults,
    precedent: Precedent = precedents.NONE,
    wish: Wish = NOTHING,
) -> ServicePlan:
    """Decide everything about one service.

    `runtimes` are those of the cluster, `precedent` is what of the cluster binds the plan, `wish` is
    what is wanted beside the spec. Raises PlanError with the step that refuses and what to change.
    """
    try:
        runtime = select_runtime(service, runtimes)
    except RuntimeSelectionError as error:
        raise PlanError(StepReason.RUNTIME_RESOLUTION, str(error)) from error
    check_vendor(runtime)
    source = _source(service, precedent)
    scaling = plan_scaling(service, wish)
    accelerator = plan_accelerator(service, runtime)
    check_strategy(service)
    check_level(service, runtime)
    _check_gateway_images(defaults)
    way = way_of(service, source, precedent)
    reads = engine_reads(way, required=is_required(service, source), precedent=precedent)
    directory = weights_directory(service, source) if reads else ""
    serving = plan_serving(service, runtime, source, cached=keeps_weights(service), directory=directory)
    prewarm = None
    if way is not None:
        prewarm = plan_prewarm(service, source, serving, way=way, precedent=precedent)
    else:
        check_token(service, source)
    only_writer = prewarm is not None and (not source.is_hub or _shared(service))
    cache = plan_cache(service, read_only=only_writer)
    _check_prewarm_images(defaults.images, prewarm)
    return ServicePlan(
        service=service,
        runtime=runtime,
        source=source,
        names=ObjectNames(service=service.name, namespace=service.namespace),
        images=defaults.images,
        gateways=defaults.gateways,
        tracing=defaults.tracing,
        traces_headers_secret=defaults.traces_headers_secret,
        scaling=scaling,
        accelerator=accelerator,
        serving=serving,
        cache=cache,
        prewarm=prewarm,
        wish=wish,
        node=precedent.node if reads and cache is not None and cache.host_path else "",
    )


def _source(service: LLMService, precedent: Precedent) -> ModelSource:
    given = service.spec.model.source
    if given is None:
        raise PlanError(
            StepReason.MODEL_RESOLUTION,
            "model.catalogRef is reserved for a later version; name the model by model.source.uri",
        )
    try:
        source = given.parsed()
        return source.pinned(precedent.digest) if source.tag and precedent.digest else source
    except ModelSourceError as error:
        raise PlanError(StepReason.MODEL_RESOLUTION, str(error)) from error


def _shared(service: LLMService) -> bool:
    return service.spec.cache.strategy is CacheStrategy.SHARED_PVC


def _check_gateway_images(defaults: Defaults) -> None:
    _not_blank("gateway", defaults.images.gateway, StepReason.GATEWAY_CONFIG)
    if defaults.gateways > 1:
        _not_blank("aggregate scaler", defaults.images.aggregate_scaler, StepReason.GATEWAY_CONFIG)


def _check_prewarm_images(images: Images, prewarm: Prewarm | None) -> None:
    if prewarm is not None:
        _not_blank("prewarm", images.prewarm, StepReason.PREWARM)
        if prewarm.staged:
            _not_blank("oras", images.oras, StepReason.PREWARM)


def _not_blank(name: str, image: str, reason: StepReason) -> None:
    if not image.strip():
        raise PlanError(reason, f"the operator was started with a blank {name} image")
