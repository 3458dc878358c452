"""Objects as the v0.4 alpha leaves them in a cluster: its contract and the API server's defaults.

Only what taking over depends on is here: the backend Deployment, the cache claim, the prewarm Job.
"""

from __future__ import annotations

from typing import Any

from noctaya_operator.kube.objects import Object, owner_reference

SCRIPT = "import os,time\nwhile not os.path.exists('/cache/.noctaya-ready'): time.sleep(2)"
CONTAINER_DEFAULTS: Object = {
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
POD_DEFAULTS: Object = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}


def labels(name: str = "chat") -> dict[str, str]:
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/managed-by": "noctaya",
        "serving.noctaya.io/llmservice": "chat",
    }


def owned(
    kind: str, name: str, owner: Object, *, annotations: dict[str, str] | None = None, **body: Any
) -> Object:
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-of-{kind}-{name}",
            "resourceVersion": "7",
            "labels": labels(),
            "annotations": annotations or {},
            "ownerReferences": [owner_reference(owner)],
        },
        **body,
    }


def health(period: int, failures: int) -> Object:
    return {
        "httpGet": {"path": "/health", "port": "http", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": period,
        "successThreshold": 1,
        "failureThreshold": failures,
    }


def backend(owner: Object, *, shared_and_prewarmed: bool = False) -> Object:
    """The Deployment of `samples.service()`, one replica running, scaled by KEDA."""
    cache: Object = {"name": "model-cache", "mountPath": "/cache"}
    if shared_and_prewarmed:
        cache["readOnly"] = True
    serving = {
        "name": "serving",
        "image": "example.com/engine:1",
        "args": ["org/model"],
        "env": [
            {"name": "HF_HOME", "value": "/cache/hf"},
            {"name": "MODELSCOPE_CACHE", "value": "/cache/modelscope"},
        ],
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
        "readinessProbe": health(10, 3),
        "startupProbe": health(10, 60),
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}, cache],
        **CONTAINER_DEFAULTS,
    }
    pod: Object = {
        "automountServiceAccountToken": False,
        "containers": [serving],
        "volumes": [
            {"name": "dshm", "emptyDir": {"medium": "Memory"}},
            {"name": "model-cache", "persistentVolumeClaim": {"claimName": "chat-cache"}},
        ],
        **POD_DEFAULTS,
    }
    if shared_and_prewarmed:
        wait = {
            "name": "wait-for-prewarm",
            "image": "example.com/engine:1",
            "command": ["python3", "-c", SCRIPT],
            "resources": {},
            "volumeMounts": [{"name": "model-cache", "mountPath": "/cache", "readOnly": True}],
            **CONTAINER_DEFAULTS,
        }
        pod["initContainers"] = [wait]
    template_labels = {**labels(), "serving.noctaya.io/runtime": "engine"}
    return owned(
        "Deployment",
        "chat",
        owner,
        annotations={"deployment.kubernetes.io/revision": "1"},
        apiVersion="apps/v1",
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
            "selector": {"matchLabels": labels()},
            "template": {"metadata": {"creationTimestamp": None, "labels": template_labels}, "spec": pod},
        },
    )


def claim(
    owner: Object, *, hashed: str | None, size: str = "50Gi", storage_class: str = "standard"
) -> Object:
    annotations = {"serving.noctaya.io/create-once-hash": hashed} if hashed else {}
    return owned(
        "PersistentVolumeClaim",
        "chat-cache",
        owner,
        annotations={"pv.kubernetes.io/bind-completed": "yes", **annotations},
        apiVersion="v1",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class,
            "volumeMode": "Filesystem",
            "volumeName": "pv-1",
        },
    )


def prewarm_job(owner: Object, *, model: str = "org/model", done: bool = True) -> Object:
    command = [
        "python3",
        "-c",
        f"from huggingface_hub import snapshot_download; snapshot_download('{model}')",
    ]
    env = [
        {"name": "HF_HOME", "value": "/cache/hf"},
        {"name": "MODELSCOPE_CACHE", "value": "/cache/modelscope"},
        {"name": "TORCH_DEVICE_BACKEND_AUTOLOAD", "value": "0"},
    ]
    conditions = [{"type": "Complete", "status": "True"}] if done else []
    return owned(
        "Job",
        "chat-prewarm",
        owner,
        annotations={"serving.noctaya.io/create-once-hash": "9f" * 32},
        apiVersion="batch/v1",
        spec={
            "backoffLimit": 4,
            "template": {"spec": {"containers": [{"name": "prewarm", "command": command, "env": env}]}},
        },
        status={"conditions": conditions},
    )
