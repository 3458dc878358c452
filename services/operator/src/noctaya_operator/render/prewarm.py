"""The Job that brings the weights into the cache, once, without an accelerator.

It runs the prewarm agent. How an OCI artifact gets there is in `artifact`. Credentials are mounted, never
arguments or environment.
"""

from __future__ import annotations

import math
from typing import Final

from noctaya_api import names
from noctaya_api.duration import format_duration_ns
from noctaya_api.model_source import Scheme

from noctaya_operator.hashes import data_hash
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import artifact, security
from noctaya_operator.render.cache import cache_mount, cache_volume
from noctaya_operator.render.metadata import backend_selector, manifest, prewarm_pod_labels
from noctaya_operator.render.pod import MODEL_SECRET, beside_the_weights, placement, queue_annotations
from noctaya_operator.render.waiting import AGENT
from noctaya_operator.serving import EnvEntry
from noctaya_operator.weights import Prewarm

BACKOFF_LIMIT: Final = 4
DEFAULT_TIMEOUT: Final = 12 * 3600.0
"""Seconds the agent gives a download unless told otherwise."""
DEADLINE_MARGIN: Final = 600
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


def render_prewarm_job(plan: ServicePlan, prewarm: Prewarm, *, prune: bool = False) -> Object:
    """The prewarm Job, with the hash of the weights it brings.

    `prune` has it remove what else is in the cache: weights of a former model that nobody uses any more.
    """
    template: Object = {
        "metadata": {"labels": prewarm_pod_labels(plan)},
        "spec": _pod(plan, prewarm, prune=prune),
    }
    if annotations := queue_annotations(plan):
        template["metadata"]["annotations"] = annotations
    return manifest(
        plan.names.prewarm_job,
        labels=backend_selector(plan),
        annotations={
            names.ANNOTATION_CREATE_ONCE_HASH: _hash(plan, prewarm),
            names.ANNOTATION_MODEL_SOURCE: plan.source.uri,
        },
        spec={
            "backoffLimit": BACKOFF_LIMIT,
            "activeDeadlineSeconds": _deadline_seconds(plan),
            "template": template,
        },
    )


def _deadline_seconds(plan: ServicePlan) -> int:
    """Seconds after which Kubernetes ends the Job: later than the agent ends itself, which says why, and the
    only bound for what runs before the agent."""
    timeout = plan.service.spec.cache.prewarm_timeout
    return math.ceil(timeout.seconds if timeout is not None else DEFAULT_TIMEOUT) + DEADLINE_MARGIN


def _hash(plan: ServicePlan, prewarm: Prewarm) -> str:
    source, cache = plan.source, plan.cache
    return data_hash(
        scheme=source.scheme,
        path=prewarm.what,
        revision=source.revision,
        target=prewarm.place,
        cache=(cache.host_path or cache.claim_name if cache else "") or plan.names.cache_claim.key.name,
    )


def _pod(plan: ServicePlan, prewarm: Prewarm, *, prune: bool) -> Object:
    engine = plan.runtime.spec.pod_security
    pod: Object = {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "securityContext": security.root_pod() if prewarm.as_root else security.writing_pod(engine),
        **placement(plan),
    }
    if plan.cache is not None and plan.cache.one_node:
        pod["affinity"] = beside_the_weights(plan)
    if prewarm.staged:
        pod["initContainers"] = artifact.containers_before(plan)
    pod["containers"] = [_agent(plan, prewarm, prune=prune)]
    pod["volumes"] = _volumes(plan, prewarm)
    return pod


def _agent(plan: ServicePlan, prewarm: Prewarm, *, prune: bool) -> Object:
    place = ["--source", plan.source.canonical_uri, "--target", prewarm.target, "--marker", prewarm.marker]
    mounts: list[Object] = [cache_mount(read_only=False), {"name": SCRATCH, "mountPath": "/tmp"}]  # noqa: S108
    if prewarm.staged:
        args = ["stage", "--from", names.STAGING_MOUNT, *place]
        mounts.append(artifact.staging_mount(read_only=True))
    else:
        args = ["download", *place]
        args += [word for glob in prewarm.files.include for word in ("--include", glob)]
        args += [word for glob in prewarm.files.exclude for word in ("--exclude", glob)]
        if _secret(plan):
            mounts.append({"name": MODEL_SECRET, "mountPath": names.MODEL_SECRET_DIR, "readOnly": True})
    if prune:
        args.append("--prune")
    return {
        "name": names.CONTAINER_PREWARM,
        "image": plan.images.prewarm,
        "command": [AGENT],
        "args": args,
        "env": _env(plan, prewarm),
        "ports": [
            {"name": names.HTTP_PORT_NAME, "containerPort": names.PREWARM_PORT, "protocol": "TCP"},
        ],
        # A process that hangs is started anew, and resumes.
        "livenessProbe": {
            "httpGet": {"path": names.PATH_HEALTHZ, "port": names.PREWARM_PORT},
            "initialDelaySeconds": 10,
            "periodSeconds": 20,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "securityContext": security.restricted_container(),
        "volumeMounts": mounts,
    }


def _env(plan: ServicePlan, prewarm: Prewarm) -> list[Object]:
    source, given = plan.source, plan.service.spec.model.source
    values: dict[str, str] = {}
    if not prewarm.staged:
        values = dict(source.env)
        if _secret(plan):
            values[names.ENV_PREWARM_SECRET_DIR] = names.MODEL_SECRET_DIR
            values[names.ENV_PREWARM_CA_FILE] = f"{names.MODEL_SECRET_DIR}/{names.MODEL_CA_KEY}"
        if source.endpoint:
            values[names.ENV_PREWARM_ENDPOINT] = source.endpoint
        if source.scheme is Scheme.S3 and given is not None and given.region:
            values[names.ENV_PREWARM_REGION] = given.region
    if (timeout := plan.service.spec.cache.prewarm_timeout) is not None:
        values[names.ENV_PREWARM_DEADLINE] = format_duration_ns(timeout.nanoseconds)
    entries: list[EnvEntry] = [{"name": name, "value": value} for name, value in values.items()]
    entries += [
        entry
        for entry in plan.serving.env
        if entry["name"] in DOWNLOAD_ENV - values.keys() and _portable(entry)
    ]
    return [dict(entry) for entry in entries]


def _portable(entry: EnvEntry) -> bool:
    """Whether an entry means the same in another Pod of the namespace."""
    return not entry.get("valueFrom") or not _FROM_ELSEWHERE.isdisjoint(entry["valueFrom"])


def _volumes(plan: ServicePlan, prewarm: Prewarm) -> list[Object]:
    volumes: list[Object] = [cache_volume(plan.cache)] if plan.cache is not None else []
    volumes.append({"name": SCRATCH, "emptyDir": {}})
    if prewarm.staged:
        volumes += artifact.volumes(plan)
    elif secret := _secret(plan):
        source = {"secretName": secret, "defaultMode": security.SECRET_MODE}
        volumes.append({"name": MODEL_SECRET, "secret": source})
    return volumes


def _secret(plan: ServicePlan) -> str:
    source = plan.service.spec.model.source
    return source.secret_ref.name if source is not None and source.secret_ref is not None else ""
