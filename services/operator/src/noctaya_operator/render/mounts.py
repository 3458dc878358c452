"""Files that gateway and aggregate scaler read: each a volume, where it is mounted, and the variables that
name what is in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from noctaya_api import names
from noctaya_api.v1alpha1.llmservice_scaling import SecretKeyRef

from noctaya_operator.kube.objects import Object
from noctaya_operator.render.security import SECRET_MODE


@dataclass(frozen=True, kw_only=True)
class Mounted:
    """One read-only volume of a container."""

    name: str
    path: str
    source: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)


def client_keys(ref: SecretKeyRef) -> Mounted:
    """The API keys of clients."""
    item = {"key": ref.key, "path": names.CLIENT_API_KEY_FILE_NAME}
    path = names.CLIENT_AUTH_DIR
    return Mounted(
        name="client-auth",
        path=path,
        source={"secret": {"secretName": ref.name, "defaultMode": SECRET_MODE, "items": [item]}},
        env={names.ENV_CLIENT_API_KEY_FILE: f"{path}/{names.CLIENT_API_KEY_FILE_NAME}"},
    )


def demand_token(secret: str) -> Mounted:
    """The token of demand reports."""
    path = names.DEMAND_AUTH_DIR
    return Mounted(
        name="demand-auth",
        path=path,
        source={"secret": {"secretName": secret, "defaultMode": SECRET_MODE}},
        env={names.ENV_DEMAND_AUTH_TOKEN_FILE: f"{path}/{names.DEMAND_TOKEN_KEY}"},
    )


def scaler_tls(secret: str) -> Mounted:
    """Certificate, key and client authority of the gRPC server that KEDA dials."""
    path = names.SCALER_TLS_DIR
    return Mounted(
        name="external-scaler-tls",
        path=path,
        source={"secret": {"secretName": secret, "defaultMode": SECRET_MODE}},
        env={
            names.ENV_SCALER_TLS_CERT_FILE: f"{path}/tls.crt",
            names.ENV_SCALER_TLS_KEY_FILE: f"{path}/tls.key",
            names.ENV_SCALER_TLS_CLIENT_CA_FILE: f"{path}/ca.crt",
        },
    )


def trace_headers(secret: str) -> Mounted:
    """Headers for the trace collector. A namespace without the Secret sends its traces without them."""
    path, key = names.TRACES_DIR, names.TRACES_HEADERS_KEY
    item = {"key": key, "path": key}
    source = {"secretName": secret, "defaultMode": SECRET_MODE, "items": [item], "optional": True}
    return Mounted(
        name="traces-headers",
        path=path,
        source={"secret": source},
        env={names.ENV_TRACES_HEADERS_FILE: f"{path}/{key}"},
    )


def notices() -> Mounted:
    """What the operator annotates on the Pod, as files: why an activation can't succeed, and that the
    weights are still being downloaded."""
    path = names.ACTIVATION_FAILURE_DIR
    return Mounted(
        name="activation-failure",
        path=path,
        source={
            "downwardAPI": {
                "items": [
                    _annotation(names.ANNOTATION_ACTIVATION_FAILURE, names.ACTIVATION_FAILURE_FILE_NAME),
                    _annotation(names.ANNOTATION_PREWARMING, names.PREWARMING_FILE_NAME),
                ]
            }
        },
        env={
            names.ENV_ACTIVATION_FAILURE_FILE: f"{path}/{names.ACTIVATION_FAILURE_FILE_NAME}",
            names.ENV_PREWARMING_FILE: f"{path}/{names.PREWARMING_FILE_NAME}",
        },
    )


def _annotation(name: str, path: str) -> Object:
    field = {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{name}']"}
    return {"path": path, "fieldRef": field}


def volumes(mounted: Iterable[Mounted]) -> list[Object]:
    """Volumes of the Pod."""
    return [{"name": each.name, **each.source} for each in mounted]


def mounts(mounted: Iterable[Mounted]) -> list[Object]:
    """Mounts of the container."""
    return [{"name": each.name, "mountPath": each.path, "readOnly": True} for each in mounted]
