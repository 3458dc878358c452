"""The Job that brings the weights into the cache, once, without an accelerator.

It runs the prewarm agent. An OCI artifact is pulled by the ORAS client into a scratch volume first; the agent
then verifies it and moves it into the cache. Credentials are mounted, never arguments.
"""

from __future__ import annotations

from typing import Final

from noctaya_api import names

from noctaya_operator.hashes import data_hash
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import security
from noctaya_operator.render.cache import cache_mount, cache_volume
from noctaya_operator.render.metadata import backend_selector, manifest, prewarm_pod_labels
from noctaya_operator.render.pod import beside_the_weights, placement, queue_annotations
from noctaya_operator.render.waiting import AGENT
from noctaya_operator.serving import EnvEntry, cache_env, model_env
from noctaya_operator.weights import Prewarm

BACKOFF_LIMIT: Final = 4
STAGING: Final = "oci-staging"
REGISTRY_AUTH: Final = "oci-registry-auth"
SCRATCH: Final = "tmp"
DOWNLOAD_ENV: Final = frozenset(
    {
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "HF_ENDPOINT",
        "MODELSCOPE_API_TOKEN",
        "MODELSCOPE_DOMAIN",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
    }
)
"""What of the runtime's environment says how to reach a hub: a download needs it as the engine does."""
_FROM_ELSEWHERE: Final = frozenset({"secretKeyRef", "configMapKeyRef"})


def render_prewarm_job(plan: ServicePlan, prewarm: Prewarm) -> Object:
    """The prewarm Job, with the hash of the weights it brings."""
    template: Object = {"metadata": {"labels": prewarm_pod_labels(plan)}, "spec": _pod(plan, prewarm)}
    if annotations := queue_annotations(plan):
        template["metadata"]["annotations"] = annotations
    return manifest(
        plan.names.prewarm_job,
        labels=backend_selector(plan),
        annotations={
            names.ANNOTATION_CREATE_ONCE_HASH: _hash(plan, prewarm),
            names.ANNOTATION_MODEL_SOURCE: plan.source.uri,
        },
        spec={"backoffLimit": BACKOFF_LIMIT, "template": template},
    )


def _hash(plan: ServicePlan, prewarm: Prewarm) -> str:
    source, cache = plan.source, plan.cache
    return data_hash(
        scheme=source.scheme,
        path=source.reference or source.path,
        revision=source.revision,
        target=prewarm.target,
        cache=(cache.host_path if cache else "") or plan.names.cache_claim.key.name,
    )


def _pod(plan: ServicePlan, prewarm: Prewarm) -> Object:
    pod: Object = {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "securityContext": security.root_pod() if prewarm.as_root else security.writing_pod(),
        **placement(plan),
    }
    if plan.cache is not None and plan.cache.one_node:
        pod["affinity"] = beside_the_weights(plan)
    if prewarm.staged:
        pod["initContainers"] = [_pull(plan)]
    pod["containers"] = [_agent(plan, prewarm)]
    pod["volumes"] = _volumes(plan, prewarm)
    return pod


def _agent(plan: ServicePlan, prewarm: Prewarm) -> Object:
    place = ["--target", prewarm.target, "--marker", prewarm.marker]
    if prewarm.staged:
        args = ["stage", "--from", names.STAGING_MOUNT, *place]
    else:
        args = ["download", "--source", plan.source.uri, *place]
    mounts: list[Object] = [cache_mount(read_only=False), {"name": SCRATCH, "mountPath": "/tmp"}]  # noqa: S108
    if prewarm.staged:
        mounts.append({"name": STAGING, "mountPath": names.STAGING_MOUNT, "readOnly": True})
    return {
        "name": names.CONTAINER_PREWARM,
        "image": plan.images.prewarm,
        "command": [AGENT],
        "args": args,
        "env": _env(plan),
        "securityContext": security.restricted_container(),
        "volumeMounts": mounts,
    }


def _env(plan: ServicePlan) -> list[Object]:
    own = {entry["name"]: entry for entry in plan.serving.env}
    entries = [own.get(entry["name"], entry) for entry in (*cache_env(), *model_env(plan.source))]
    entries += [entry for entry in own.values() if entry["name"] in DOWNLOAD_ENV and _portable(entry)]
    return [dict(entry) for entry in entries]


def _portable(entry: EnvEntry) -> bool:
    """Whether an entry means the same in another Pod of the namespace."""
    return not entry.get("valueFrom") or not _FROM_ELSEWHERE.isdisjoint(entry["valueFrom"])


def _pull(plan: ServicePlan) -> Object:
    args = ["pull", plan.source.reference, "--output", names.STAGING_MOUNT, "--no-tty"]
    mounts: list[Object] = [{"name": STAGING, "mountPath": names.STAGING_MOUNT}]
    if _registry_secret(plan):
        args += ["--registry-config", f"{names.REGISTRY_AUTH_DIR}/config.json"]
        mounts.append({"name": REGISTRY_AUTH, "mountPath": names.REGISTRY_AUTH_DIR, "readOnly": True})
    return {
        "name": names.CONTAINER_PULL_OCI_MODEL,
        "image": plan.images.oras,
        "args": args,
        "securityContext": security.restricted_container(),
        "volumeMounts": mounts,
    }


def _volumes(plan: ServicePlan, prewarm: Prewarm) -> list[Object]:
    volumes: list[Object] = [cache_volume(plan, plan.cache)] if plan.cache is not None else []
    volumes.append({"name": SCRATCH, "emptyDir": {}})
    if prewarm.staged:
        volumes.append({"name": STAGING, "emptyDir": {}})
        if secret := _registry_secret(plan):
            item = {"key": ".dockerconfigjson", "path": "config.json"}
            source = {"secretName": secret, "defaultMode": security.SECRET_MODE, "items": [item]}
            volumes.append({"name": REGISTRY_AUTH, "secret": source})
    return volumes


def _registry_secret(plan: ServicePlan) -> str:
    source = plan.service.spec.model.source
    return source.secret_ref.name if source is not None and source.secret_ref is not None else ""
