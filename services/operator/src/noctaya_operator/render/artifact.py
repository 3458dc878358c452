"""How an OCI artifact gets from its registry into a scratch volume, before the agent stages it.

The ORAS client copies it as an OCI image layout, which the agent then verifies blob by blob. Its login is
made by the agent from the pull Secret, which alone sees the Secret: all plain forms are understood, a
credential helper is refused by name, and the client gets nothing but the one entry it needs.
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
CONFIG: Final = "config.json"
CA_DIR: Final = "/var/run/noctaya/registry-ca"


def containers_before(plan: ServicePlan) -> list[Object]:
    """The init containers of the Job, in order."""
    return [*([_login(plan)] if _secret(plan) else []), _pull(plan)]


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


def _pull(plan: ServicePlan) -> Object:
    args = ["cp", "--no-tty", "--to-oci-layout", plan.source.reference, LAYOUT]
    container: Object = {
        "name": names.CONTAINER_PULL_OCI_MODEL,
        "image": plan.images.oras,
        # The client does not start without a home, though it keeps nothing there.
        "env": [{"name": "HOME", "value": "/"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": security.restricted_container(),
    }
    mounts = [staging_mount(read_only=False)]
    if plan.source.endpoint:
        args.append("--from-plain-http")
    if _secret(plan):
        args += ["--from-registry-config", f"{names.REGISTRY_LOGIN_DIR}/{CONFIG}"]
        mounts.append({"name": REGISTRY_LOGIN, "mountPath": names.REGISTRY_LOGIN_DIR, "readOnly": True})
        # Go takes the authorities of this file beside the system's, and does without a file that is missing.
        container["env"].append({"name": "SSL_CERT_FILE", "value": f"{CA_DIR}/{names.MODEL_CA_KEY}"})
        mounts.append({"name": REGISTRY_CA, "mountPath": CA_DIR, "readOnly": True})
    return {**container, "args": args, "volumeMounts": mounts}


def _from_secret(volume: str, secret: str, key: str, file: str, *, optional: bool = False) -> Object:
    source: Object = {"secretName": secret, "defaultMode": security.SECRET_MODE}
    source["items"] = [{"key": key, "path": file}]
    if optional:
        source["optional"] = True
    return {"name": volume, "secret": source}


def _secret(plan: ServicePlan) -> str:
    source = plan.service.spec.model.source
    return source.secret_ref.name if source is not None and source.secret_ref is not None else ""
