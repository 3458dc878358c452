"""Everything the v0.4 alpha leaves in a cluster for one service, written as its contract says it wrote.

By server-side apply under the field manager that this version uses too, with two gateways, a prewarmed claim,
and a controller reference to the service. The list is its apply order.
"""

from __future__ import annotations

from typing import Any, Final

from .client import Object

MANAGER: Final = "noctaya-operator"
TOKEN: Final = "x" * 43
GATEWAY: Final = "example.com/alpha-gateway:0.4"
ENGINE: Final = "example.com/engine:1"
CLAIM_HASH: Final = "7b5f31087f17125b4e2ed38862d18f7e4f544bd16566c4356a7d243135113e35"
"""Of a claim with ReadWriteOnce and 30Gi."""
GATEWAYS: Final = 2
HARDENED: Final[Object] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "fsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
LOCKED: Final[Object] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def alpha_service(namespace: str) -> Object:
    """The LLMService all of it is for."""
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "LLMService",
        "metadata": {"name": "chat", "namespace": namespace},
        "spec": {
            "model": {"source": {"uri": "hf://org/model"}},
            "runtime": {"name": "alpha-engine"},
            "cache": {"size": "30Gi", "prewarm": True},
        },
    }


def alpha_runtime() -> Object:
    """The runtime it uses."""
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "InferenceRuntime",
        "metadata": {"name": "alpha-engine"},
        "spec": {
            "vendor": "nvidia",
            "container": {"image": ENGINE, "args": ["{{ .Model.Path }}"], "port": {}},
            "accelerator": {"resourceName": "nvidia.com/gpu"},
            "lifecycle": {"terminationGracePeriodSeconds": 60, "preStopDrain": True},
        },
    }


def alpha_objects(service: Object) -> list[Object]:
    """What the alpha made of `service`, as the API server has that."""
    namespace = service["metadata"]["namespace"]
    objects = [
        _scaled_object(namespace),
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _ours("chat-demand-auth"),
            "stringData": {"token": TOKEN},
        },
        _claim(),
        _prewarm(),
        _backend(namespace),
        _service("chat-backend", _labels(), _labels(), [("http", 80, "http")]),
        _gateway(namespace),
        _service("chat", _public(), _gateway_labels(), [("http", 80, 8080)]),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _ours("chat-gateway", _public()),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": _gateway_labels()}},
        },
        _scaler(),
        _service("chat-scaler", _public(), _scaler_labels(), [("grpc", 9090, 9090), ("http", 9091, 9091)]),
    ]
    owner = {
        "apiVersion": service["apiVersion"],
        "kind": service["kind"],
        "name": "chat",
        "uid": service["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for obj in objects:
        obj["metadata"] |= {"namespace": namespace, "ownerReferences": [owner]}
    return objects


def _labels() -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "chat",
        "app.kubernetes.io/managed-by": "noctaya",
        "serving.noctaya.io/llmservice": "chat",
    }


def _gateway_labels() -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "chat-gateway",
        "app.kubernetes.io/managed-by": "noctaya",
        "serving.noctaya.io/gateway": "chat",
    }


def _scaler_labels() -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "chat-scaler",
        "app.kubernetes.io/managed-by": "noctaya",
        "serving.noctaya.io/scaler": "chat",
    }


def _public() -> dict[str, str]:
    return {**_gateway_labels(), "serving.noctaya.io/llmservice": "chat"}


def _ours(name: str, labels: dict[str, str] | None = None, *, hashed: str = "") -> Object:
    metadata: Object = {"name": name, "labels": labels or _labels()}
    if hashed:
        metadata["annotations"] = {"serving.noctaya.io/create-once-hash": hashed}
    return metadata


def _secret() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _ours("chat-demand-auth"),
        "stringData": {"token": TOKEN},
    }


def _scaled_object(namespace: str) -> Object:
    window = {"scaleDown": {"stabilizationWindowSeconds": 300}}
    trigger = {
        "type": "external-push",
        "metadata": {
            "scalerAddress": f"chat-scaler.{namespace}.svc:9090",
            "metricName": "pending",
            "targetValue": "10",
        },
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": _ours("chat"),
        "spec": {
            "scaleTargetRef": {"name": "chat"},
            "minReplicaCount": 0,
            "maxReplicaCount": 1,
            "pollingInterval": 5,
            "cooldownPeriod": 300,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": window}},
            "triggers": [trigger],
        },
    }


def _claim() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _ours("chat-cache", hashed=CLAIM_HASH),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "30Gi"}}},
    }


CACHE_ENV: Final = [
    {"name": "HF_HOME", "value": "/cache/hf"},
    {"name": "MODELSCOPE_CACHE", "value": "/cache/modelscope"},
]
CACHE_MOUNT: Final[Object] = {"name": "model-cache", "mountPath": "/cache"}
CACHE_VOLUME: Final[Object] = {"name": "model-cache", "persistentVolumeClaim": {"claimName": "chat-cache"}}


def _prewarm() -> Object:
    script = "from huggingface_hub import snapshot_download; snapshot_download('org/model')"
    container = {
        "name": "prewarm",
        "image": ENGINE,
        "command": ["python3", "-c", script],
        "env": [*CACHE_ENV, {"name": "TORCH_DEVICE_BACKEND_AUTOLOAD", "value": "0"}],
        "volumeMounts": [CACHE_MOUNT],
    }
    pod = {
        "automountServiceAccountToken": False,
        "restartPolicy": "OnFailure",
        "containers": [container],
        "volumes": [CACHE_VOLUME],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _ours("chat-prewarm", hashed="0" * 64),
        "spec": {"backoffLimit": 4, "template": {"metadata": {"labels": _labels()}, "spec": pod}},
    }


def _deployment(name: str, selector: dict[str, str], pod: Object, **more: Any) -> Object:
    labels = more.pop("pod_labels", selector)
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": selector}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _ours(name, labels), "spec": spec}


def _backend(namespace: str) -> Object:
    probe = {"httpGet": {"path": "/health", "port": "http"}}
    serving = {
        "name": "serving",
        "image": ENGINE,
        "args": ["org/model"],
        "env": CACHE_ENV,
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": probe,
        "startupProbe": {**probe, "periodSeconds": 10, "failureThreshold": 60},
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 120"]}}},
        "volumeMounts": [
            {"name": "dshm", "mountPath": "/dev/shm"},
            {"name": "model-cache", "mountPath": "/cache"},
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 130,
        "containers": [serving],
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}, CACHE_VOLUME],
    }
    labels = {**_labels(), "serving.noctaya.io/runtime": "alpha-engine"}
    return _deployment("chat", _labels(), pod, pod_labels=labels)


def _gateway(namespace: str) -> Object:
    env: list[Object] = [
        {"name": "NOCTAYA_BACKEND_URL", "value": f"http://chat-backend.{namespace}.svc:80"},
        {"name": "NOCTAYA_LISTEN_ADDR", "value": ":8080"},
        {"name": "NOCTAYA_MAX_QUEUE", "value": "100"},
        {
            "name": "NOCTAYA_DEMAND_AGGREGATOR_URL",
            "value": f"http://chat-scaler.{namespace}.svc:9091/v1/demand",
        },
        {"name": "NOCTAYA_GATEWAY_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "NOCTAYA_ACTIVATION_TIMEOUT", "value": "5m0s"},
        {"name": "NOCTAYA_COLDSTART_MODE", "value": "keepalive"},
        {"name": "NOCTAYA_HEARTBEAT_INTERVAL", "value": "10s"},
        {"name": "NOCTAYA_DEMAND_AUTH_TOKEN_FILE", "value": "/var/run/noctaya/demand-auth/token"},
    ]
    probe = {"httpGet": {"path": "/healthz", "port": 8080}}
    container = {
        "name": "gateway",
        "image": GATEWAY,
        "env": env,
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "readinessProbe": probe,
        "livenessProbe": probe,
        "securityContext": LOCKED,
        "volumeMounts": [TOKEN_MOUNT],
    }
    term = {
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": _gateway_labels()},
        },
    }
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = {**_hardened_pod(container), "affinity": affinity}
    return _deployment("chat-gateway", _gateway_labels(), pod, replicas=GATEWAYS)


TOKEN_MOUNT: Final[Object] = {
    "name": "demand-auth",
    "mountPath": "/var/run/noctaya/demand-auth",
    "readOnly": True,
}


def _scaler() -> Object:
    env = [
        {"name": "NOCTAYA_AGGREGATOR_LISTEN_ADDR", "value": ":9091"},
        {"name": "NOCTAYA_SCALER_LISTEN_ADDR", "value": ":9090"},
        {"name": "NOCTAYA_MAX_GATEWAY_MEMBERS", "value": "16"},
        {"name": "NOCTAYA_MAX_GATEWAY_DEMAND", "value": "100"},
        {"name": "NOCTAYA_DEMAND_AUTH_TOKEN_FILE", "value": "/var/run/noctaya/demand-auth/token"},
    ]
    probe = {"httpGet": {"path": "/readyz", "port": 9091}}
    container = {
        "name": "scaler",
        "image": GATEWAY,
        "args": ["--mode=aggregator"],
        "env": env,
        "ports": [
            {"name": "grpc", "containerPort": 9090, "protocol": "TCP"},
            {"name": "http", "containerPort": 9091, "protocol": "TCP"},
        ],
        "readinessProbe": probe,
        "livenessProbe": probe,
        "securityContext": LOCKED,
        "volumeMounts": [TOKEN_MOUNT],
    }
    return _deployment("chat-scaler", _scaler_labels(), _hardened_pod(container), replicas=1)


def _hardened_pod(container: Object) -> Object:
    secret = {"secretName": "chat-demand-auth", "defaultMode": 0o440}
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": HARDENED,
        "containers": [container],
        "volumes": [{"name": "demand-auth", "secret": secret}],
    }


def _service(
    name: str, labels: dict[str, str], selector: dict[str, str], ports: list[tuple[str, int, int | str]]
) -> Object:
    listed = [
        {"name": port, "port": number, "targetPort": target, "protocol": "TCP"}
        for port, number, target in ports
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _ours(name, labels),
        "spec": {"selector": selector, "ports": listed},
    }
