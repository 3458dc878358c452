"""How an OCI artifact gets from its registry into a scratch volume, before the agent stages it.

The ORAS client copies it as an OCI image layout, which the agent then verifies blob by blob. Its login is
made by the agent from the pull Secret, which alone sees the Secret: all plain forms are understood, a
credential helper is refused by name, and the client gets nothing but the one entry it needs.

The client shows nobody how far it is. So the manifest, which says how large everything is, comes first, and
beside the pull a sidecar of the agent counts what has arrived.
"""

from __future__ import annotations

from typing import Final

from noctaya_api import names

from noctaya_operator.cache_volume import DEFAULT_CACHE_SIZE
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import security
from noctaya_operator.render.waiting import AGENT

STAGING: Final = "oci-staging"
REGISTRY_AUTH: Final = "oci-registry-auth"
REGISTRY_CA: Final = "oci-registry-ca"
REGISTRY_LOGIN: Final = "oci-registry-login"
LAYOUT: Final = f"{names.STAGING_MOUNT}:artifact"
"""The layout and the name of the artifact in it."""
MANIFEST: Final = f"{names.STAGING_MOUNT}/.noctaya-manifest.json"
"""Beside what belongs to the layout."""
CONFIG: Final = "config.json"
CA_DIR: Final = "/var/run/noctaya/registry-ca"


def containers_before(plan: ServicePlan) -> list[Object]:
    """The init containers of the Job, in order."""
    login = [_login(plan)] if _secret(plan) else []
    return [*login, _fetch_manifest(plan), _follow(plan), _pull(plan)]


def staging_mount(*, read_only: bool) -> Object:
    """Where the artifact lies."""
    mount: Object = {"name": STAGING, "mountPath": names.STAGING_MOUNT}
    return {**mount, "readOnly": True} if read_only else mount


def volumes(plan: ServicePlan) -> list[Object]:
    """What they need beside the cache. An artifact larger than the cache ends the Pod, not the node."""
    size = plan.cache.size if plan.cache is not None else DEFAULT_CACHE_SIZE
    found: list[Object] = [{"name": STAGING, "emptyDir": {"sizeLimit": size}}]
    if secret := _secret(plan):
        found.append(_from_secret(REGISTRY_AUTH, secret, ".dockerconfigjson", CONFIG))
        found.append(_from_secret(REGISTRY_CA, secret, names.MODEL_CA_KEY, names.MODEL_CA_KEY, optional=True))
        memory = {"medium": "Memory", "sizeLimit": "1Mi"}
        found.append({"name": REGISTRY_LOGIN, "emptyDir": memory})
    return found


def _login(plan: ServicePlan) -> Object:
    return {
        "name": names.CONTAINER_REGISTRY_AUTH,
        "image": plan.images.prewarm,
        "command": [AGENT],
        "args": [
            "registry-auth",
            "--config",
            f"{names.REGISTRY_AUTH_DIR}/{CONFIG}",
            "--source",
            plan.source.canonical_uri,
            "--output",
            f"{names.REGISTRY_LOGIN_DIR}/{CONFIG}",
        ],
        "securityContext": security.restricted_container(),
        "volumeMounts": [
            {"name": REGISTRY_AUTH, "mountPath": names.REGISTRY_AUTH_DIR, "readOnly": True},
            {"name": REGISTRY_LOGIN, "mountPath": names.REGISTRY_LOGIN_DIR},
        ],
    }


def _fetch_manifest(plan: ServicePlan) -> Object:
    how = ["--plain-http"] if plan.source.endpoint else []
    if _secret(plan):
        how += ["--registry-config", f"{names.REGISTRY_LOGIN_DIR}/{CONFIG}"]
    args = ["manifest", "fetch", "--output", MANIFEST, plan.source.reference, *how]
    return _client(plan, names.CONTAINER_FETCH_OCI_MANIFEST, args)


def _follow(plan: ServicePlan) -> Object:
    return {
        "name": names.CONTAINER_PULL_PROGRESS,
        "image": plan.images.prewarm,
        # Beside all that comes after it, and stopped when the agent is done.
        "restartPolicy": "Always",
        "command": [AGENT],
        "args": ["follow-pull", "--layout", names.STAGING_MOUNT, "--manifest", MANIFEST],
        "env": [{"name": names.ENV_PREWARM_LISTEN_ADDR, "value": f":{names.PULL_PROGRESS_PORT}"}],
        "ports": [{"name": "pull", "containerPort": names.PULL_PROGRESS_PORT, "protocol": "TCP"}],
        "securityContext": security.restricted_container(),
        "volumeMounts": [staging_mount(read_only=True)],
    }


def _pull(plan: ServicePlan) -> Object:
    how = ["--from-plain-http"] if plan.source.endpoint else []
    if _secret(plan):
        how += ["--from-registry-config", f"{names.REGISTRY_LOGIN_DIR}/{CONFIG}"]
    args = ["cp", "--no-tty", "--to-oci-layout", plan.source.reference, LAYOUT, *how]
    return _client(plan, names.CONTAINER_PULL_OCI_MODEL, args)


def _client(plan: ServicePlan, name: str, args: list[str]) -> Object:
    """A container of the registry's client."""
    # It does not start without a home, though it keeps nothing there.
    env: list[Object] = [{"name": "HOME", "value": "/"}]
    mounts = [staging_mount(read_only=False)]
    if _secret(plan):
        mounts.append({"name": REGISTRY_LOGIN, "mountPath": names.REGISTRY_LOGIN_DIR, "readOnly": True})
        # Go takes the authorities of this file beside the system's, and does without a file that is missing.
        env.append({"name": "SSL_CERT_FILE", "value": f"{CA_DIR}/{names.MODEL_CA_KEY}"})
        mounts.append({"name": REGISTRY_CA, "mountPath": CA_DIR, "readOnly": True})
    return {
        "name": name,
        "image": plan.images.oras,
        "env": env,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": security.restricted_container(),
        "args": args,
        "volumeMounts": mounts,
    }


def _from_secret(volume: str, secret: str, key: str, file: str, *, optional: bool = False) -> Object:
    source: Object = {"secretName": secret, "defaultMode": security.SECRET_MODE}
    source["items"] = [{"key": key, "path": file}]
    if optional:
        source["optional"] = True
    return {"name": volume, "secret": source}


def _secret(plan: ServicePlan) -> str:
    source = plan.service.spec.model.source
    return source.secret_ref.name if source is not None and source.secret_ref is not None else ""
