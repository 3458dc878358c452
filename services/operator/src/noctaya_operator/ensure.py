"""Getting one rendered object into the cluster, by its mode, with as few writes as possible."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from noctaya_api import names
from noctaya_api.conditions import StepReason

from noctaya_operator.adoption import keep_running_template
from noctaya_operator.create_once import judge
from noctaya_operator.drift import drifted, managers, only_replicas, owned_by_creation
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import AlreadyExists, ApiError, NotFound
from noctaya_operator.kube.objects import (
    Object,
    controlled_by,
    deleting,
    owner_reference,
    resource_version_of,
    uid_of,
)
from noctaya_operator.live_objects import LiveObjects
from noctaya_operator.metrics import OperatorMetrics
from noctaya_operator.object_names import ObjectRef
from noctaya_operator.ownership import check_ownership
from noctaya_operator.plan import Obsolete, ServicePlan
from noctaya_operator.plan_error import PlanError
from noctaya_operator.render import Rendered, WriteMode

log = logging.getLogger(__name__)


class StepFailed(Exception):
    """The API server refused or failed a step of a pass."""

    def __init__(self, reason: StepReason, ref: ObjectRef, error: ApiError) -> None:
        super().__init__(f"{ref}: {error.message}")
        self.reason = reason
        self.error = error


class Ensurer:
    """Writes the objects of services.

    Args:
        client: the API server.
        live: what is known of the objects.
        metrics: counts writes.
    """

    def __init__(self, client: KubeClient, live: LiveObjects, *, metrics: OperatorMetrics) -> None:
        self._client = client
        self._live = live
        self._metrics = metrics
        self._settled: dict[ObjectRef, tuple[str, str]] = {}

    async def ensure(
        self,
        plan: ServicePlan,
        rendered: Rendered,
        owner: Object,
        *,
        live: Object | None,
        growing: frozenset[str] = frozenset(),
    ) -> Object:
        """Create, change or adopt one object; returns it as it is now.

        `live` is the object as it was found in this pass, None when there is none; `growing` are the
        StorageClasses whose volumes can grow.

        Raises:
            PlanError: it is somebody else's, can't be changed, or is going away.
            StepFailed: the server refused.
        """
        try:
            if rendered.mode is WriteMode.CREATE_ONCE:
                return await self._once(plan, rendered, owner, live, growing)
            return await self._applied(rendered, owner, live)
        except ApiError as error:
            self._live.forget(rendered.ref)
            raise StepFailed(rendered.step, rendered.ref, error) from error

    async def remove(self, obsolete: Obsolete, owner: Object, *, ask: bool) -> None:
        """Delete an object the plan has no use for, if the service controls it.

        What is ours has our labels and so is in a cache; `ask` is whether to ask the server for a kind that
        has none, which are Secrets. Raises StepFailed.
        """
        ref = obsolete.ref
        try:
            live = self._live.cached(ref)
            if live is None and ask and not self._live.caches(ref.resource):
                live = await self._live.fetch(ref)
            if live is None or deleting(live) or not controlled_by(live, owner):
                return
            await self._delete(ref, live)
        except NotFound:
            return
        except ApiError as error:
            raise StepFailed(obsolete.step, ref, error) from error

    async def discard(self, rendered: Rendered, live: Object) -> None:
        """Delete an object of ours that is made anew once it and its Pods are gone. Raises StepFailed."""
        try:
            await self._delete(rendered.ref, live, propagation="Foreground")
        except NotFound:
            return
        except ApiError as error:
            raise StepFailed(rendered.step, rendered.ref, error) from error

    async def _delete(self, ref: ObjectRef, live: Object, *, propagation: str = "Background") -> None:
        await self._client.delete(
            ref.resource, ref.key.namespace, ref.key.name, uid=uid_of(live), propagation=propagation
        )
        self._live.forget(ref)
        self._metrics.wrote(ref.resource, "delete")

    async def _once(
        self,
        plan: ServicePlan,
        rendered: Rendered,
        owner: Object,
        live: Object | None,
        growing: frozenset[str],
    ) -> Object:
        ref = rendered.ref
        if live is None:
            desired = _owned(rendered.object, owner) if rendered.controlled else rendered.object
            try:
                return await self._create(ref, desired, names.FIELD_MANAGER)
            except AlreadyExists:
                live = await self._live.fetch(ref)
                if live is None:
                    raise
        patch = judge(plan, rendered, live=live, owner=owner, growing=growing)
        if patch is None:
            return live
        answer = await self._client.patch_merge(
            ref.resource, ref.key.namespace, ref.key.name, patch, field_manager=names.FIELD_MANAGER
        )
        self._metrics.wrote(ref.resource, "patch")
        return self._live.wrote(ref, answer)

    async def _applied(self, rendered: Rendered, owner: Object, live: Object | None) -> Object:
        ref, desired = rendered.ref, _owned(rendered.object, owner)
        if live is None:
            if rendered.mode is WriteMode.CREATE_AT_ZERO:
                at_zero = {**desired, "spec": {**desired["spec"], "replicas": 0}}
                live = await self._create(ref, at_zero, names.CREATE_FIELD_MANAGER)
            return await self._apply(ref, desired, live)
        check_ownership(live, owner, ref=ref)
        if deleting(live):
            raise PlanError(rendered.step, f"{ref} is being deleted; it is made anew once it is gone")
        if rendered.mode is WriteMode.CREATE_AT_ZERO:
            desired = keep_running_template(desired, live)
        if not drifted(desired, live) or self._is_settled(ref, desired, live):
            return live
        if owned_by_creation(live):
            await self._give_up_creation(ref)
        return await self._apply(ref, desired, live)

    async def _create(self, ref: ObjectRef, obj: Object, manager: str) -> Object:
        answer = await self._client.create(obj, field_manager=manager)
        self._metrics.wrote(ref.resource, "create")
        return self._live.wrote(ref, answer)

    async def _apply(self, ref: ObjectRef, desired: Object, live: Object | None) -> Object:
        if live is not None:
            # Never onto another object that took its place meanwhile.
            desired = {**desired, "metadata": {**desired["metadata"], "uid": uid_of(live)}}
        answer = await self._client.apply(desired, field_manager=names.FIELD_MANAGER)
        self._metrics.wrote(ref.resource, "apply")
        kept = self._live.wrote(ref, answer)
        if drifted(desired, kept):
            # Somebody (a mutating webhook) insists on something else; asking again would go on for ever.
            if ref not in self._settled:
                log.warning("%s is not stored as applied, which is left so", ref)
            self._settled[ref] = (_digest(desired), _digest(kept))
        else:
            self._settled.pop(ref, None)
        return kept

    def _is_settled(self, ref: ObjectRef, desired: Object, live: Object) -> bool:
        settled = self._settled.get(ref)
        if settled is None:
            return False
        desired = {**desired, "metadata": {**desired["metadata"], "uid": uid_of(live)}}
        return settled == (_digest(desired), _digest(live))

    async def _give_up_creation(self, ref: ObjectRef) -> None:
        """Take all fields but the replicas from the manager that created the object.

        As long as it owns them too, nothing we leave out of an apply would go away.
        """
        fresh = await self._live.fetch(ref)
        if fresh is None:
            return
        entries = [only_replicas(entry) for entry in managers(fresh)]
        if entries == list(managers(fresh)):
            return
        body = {
            "metadata": {
                "uid": uid_of(fresh),
                "resourceVersion": resource_version_of(fresh),
                "managedFields": entries,
            }
        }
        answer = await self._client.patch_merge(
            ref.resource, ref.key.namespace, ref.key.name, body, field_manager=names.FIELD_MANAGER
        )
        self._metrics.wrote(ref.resource, "patch")
        self._live.wrote(ref, answer)


def is_transient(error: ApiError) -> bool:
    """Whether a failed step is likely to go well when tried again at once."""
    return error.transient


def _owned(obj: Object, owner: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner_reference(owner)]}}


def _digest(obj: Mapping[str, Any]) -> str:
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name in {"labels", "annotations", "ownerReferences", "uid"}
    }
    content = {name: value for name, value in obj.items() if name not in {"metadata", "status"}}
    return json.dumps([metadata, content], sort_keys=True)
