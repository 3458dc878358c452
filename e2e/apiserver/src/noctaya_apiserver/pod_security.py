"""Which level of Pod Security a Pod meets, by the real admission and not by a reading of its rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from .client import ApiClient, Object, Refused

LEVELS: Final = ("restricted", "baseline", "privileged")
"""From the strictest to the one that allows everything."""


class PodSecurity:
    """Three namespaces, each enforcing one level; Pods are created in them and not kept.

    Args:
        api: an administrator.
        prefix: of the namespaces' names; they are left behind.
    """

    def __init__(self, api: ApiClient, prefix: str) -> None:
        self._api = api
        self._prefix = prefix
        for level in LEVELS:
            labels = {
                "pod-security.kubernetes.io/enforce": level,
                "pod-security.kubernetes.io/enforce-version": "latest",
            }
            metadata = {"name": self.namespace(level), "labels": labels}
            api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def namespace(self, level: str) -> str:
        """The namespace that enforces a level."""
        return f"{self._prefix}-{level}"

    def level(self, template: Object) -> str:
        """The strictest level that lets a Pod of this template in. Refused when it is no Pod at all."""
        for level in LEVELS:
            try:
                self._create(template, self.namespace(level))
            except Refused as error:
                if error.status != 403 or "violates PodSecurity" not in error.message:
                    raise
            else:
                return level
        raise AssertionError("`privileged` lets everything in")

    def _create(self, template: Object, namespace: str) -> None:
        metadata = {"name": "trial", "namespace": namespace, "labels": template["metadata"].get("labels", {})}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self._api.create(pod, dryRun="All", fieldValidation="Strict")


def templates(objects: Iterable[Object]) -> Iterator[tuple[str, Object]]:
    """`Kind/name` and Pod template of every object that makes Pods."""
    for obj in objects:
        template = (obj.get("spec") or {}).get("template")
        if isinstance(template, dict) and "spec" in template:
            yield f"{obj['kind']}/{obj['metadata']['name']}", template
