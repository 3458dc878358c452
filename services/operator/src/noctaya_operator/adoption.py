"""Taking over a backend of the v0.4 alpha without restarting it.

What this version adds to the Pods of an engine - security contexts, the node of the claim, the agent instead
of a script that waits for the weights - is not worth the minutes that a running model would need to load
again. So a template that differs from the alpha's in nothing else is kept as long as Pods of it run; the
additions come at zero replicas, or with a change that restarts the Pods anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from noctaya_api import names

from noctaya_operator.kube.objects import Object
from noctaya_operator.pod_defaults import with_defaults

_SCRIPT: Final = ["python3", "-c"]


def keep_running_template(desired: Object, live: Mapping[str, Any] | None) -> Object:
    """The Deployment to apply for `desired`: itself, or with the Pods as `live` has them.

    `live` is the backend's Deployment as it is, None when there is none.
    """
    template = _template_of(live)
    if live is None or template is None or not _runs(live) or "securityContext" in _trimmed(template):
        return desired
    kept = _as_the_alpha_would(desired["spec"]["template"], template)
    if with_defaults(kept) != with_defaults(_without_foreign_metadata(template, kept)):
        return desired
    return {**desired, "spec": {**desired["spec"], "template": kept}}


def _runs(live: Mapping[str, Any]) -> bool:
    """Whether a Pod is there or is wanted. An absent `spec.replicas` means one."""
    status = live.get("status") or {}
    return bool(live["spec"].get("replicas", 1) or status.get("replicas"))


def _as_the_alpha_would(template: Mapping[str, Any], live: Mapping[str, Any]) -> Object:
    kept: Object = deepcopy(dict(template))
    pod = kept["spec"]
    pod.pop("securityContext", None)
    pod.pop("affinity", None)
    for container in pod["containers"]:
        container.pop("securityContext", None)
    if "initContainers" in pod and (script := _waiting_script(live)) is not None:
        pod["initContainers"] = [script]
    return kept


def _without_foreign_metadata(live: Mapping[str, Any], ours: Mapping[str, Any]) -> Object:
    """The template without labels and annotations that others put there, `kubectl rollout restart` for one.

    They stay in the cluster: server-side apply leaves alone what is not ours.
    """
    found, wanted = live.get("metadata") or {}, ours["metadata"]
    metadata = {}
    for field, own in (("labels", names.LABEL_RUNTIME), ("annotations", names.ANNOTATION_VOLCANO_QUEUE)):
        known = {own, *wanted.get(field, {})}
        metadata[field] = {name: value for name, value in (found.get(field) or {}).items() if name in known}
    return {**live, "metadata": metadata}


def _waiting_script(live: Mapping[str, Any]) -> Object | None:
    """The alpha's init container, which ran Python from the engine's image."""
    found = live["spec"].get("initContainers") or []
    if len(found) != 1 or found[0].get("name") != names.CONTAINER_WAIT_FOR_PREWARM:
        return None
    words = [*(found[0].get("command") or []), *(found[0].get("args") or [])]
    return deepcopy(dict(found[0])) if words[:2] == _SCRIPT else None


def _template_of(live: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    spec = live.get("spec") if live is not None else None
    template = spec.get("template") if isinstance(spec, Mapping) else None
    if not isinstance(template, Mapping) or not isinstance(template.get("spec"), Mapping):
        return None
    return template


def _trimmed(template: Mapping[str, Any]) -> Object:
    return {name: value for name, value in template["spec"].items() if value}
