"""Objects of a cluster that is well; tests break what they are about."""

from typing import Any

from noctaya_api import names

Object = dict[str, Any]

ALL_SERVICES = "/apis/serving.noctaya.io/v1alpha1/llmservices"
OWN_SERVICES = "/apis/serving.noctaya.io/v1alpha1/namespaces/models/llmservices"
DEPLOYMENTS = "/apis/apps/v1/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EVENTS = "/apis/events.k8s.io/v1/namespaces/models/events"
OPERATOR_LABELS = {
    "app.kubernetes.io/component": "controller-manager",
    "app.kubernetes.io/name": "noctaya",
}


def condition(kind: str, status: str, reason: str, message: str = "") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-30T09:58:00Z",
    }


def llm_service(name: str = "chat", *, conditions: list[Object] | None = None, **status: Any) -> Object:
    if conditions is None:
        conditions = [
            condition("Ready", "False", "ScaledToZero"),
            condition("Degraded", "False", "Inactive"),
            condition("AutoscalingReady", "True", "ScaledObjectApplied"),
        ]
    return {
        "metadata": {
            "namespace": "models",
            "name": name,
            "uid": f"uid-{name}",
            "generation": 2,
            "resourceVersion": "7",
        },
        "spec": {"model": {"source": {"uri": "hf://org/model"}}, "scaling": {"max": 3}},
        "status": {
            "phase": "ScaledToZero",
            "observedGeneration": 2,
            "resolvedRuntime": "vllm",
            "conditions": conditions,
            **status,
        },
    }


ACTIVATION = {
    "outcome": "Succeeded",
    "pod": "chat-1",
    "requested": "2026-11-30T09:50:00.000Z",
    "replicasWritten": "2026-11-30T09:50:00.500Z",
    "scheduled": "2026-11-30T09:50:01Z",
    "imagesPulled": "2026-11-30T09:50:02Z",
    "started": "2026-11-30T09:50:03Z",
    "ready": "2026-11-30T09:50:20Z",
}


def gateway_pod(service: str = "chat", *, number: int = 1, ready: bool = True) -> Object:
    return {
        "metadata": {
            "namespace": "models",
            "name": f"{service}-gateway-{number}",
            "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_GATEWAY: service},
        },
        "spec": {"containers": [{"name": "gateway", "image": "ghcr.io/noctaya/noctaya-gateway:0.5.0"}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def metrics_path(pod: Object, port: int = names.GATEWAY_PORT) -> str:
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}:{port}/proxy/metrics"


def metrics(*, demand: int = 0, held: int = 0, streams: int = 1, undelivered: float = 0) -> str:
    return (
        "# TYPE noctaya_gateway_demand gauge\n"
        f"noctaya_gateway_demand {demand}.0\nnoctaya_gateway_held {held}\nnoctaya_gateway_pending {held}\n"
        f"noctaya_gateway_scaler_streams {streams}\n"
        f"noctaya_gateway_undelivered_demand_seconds {undelivered}\n"
        'noctaya_gateway_requests_total{code="200"} 3\n'
    )


def deployment(
    namespace: str, name: str, labels: Object, *, image: str, ready: int = 1, **container: Any
) -> Object:
    return {
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {
            "replicas": 1,
            "template": {
                "spec": {"serviceAccountName": "noctaya", "containers": [{"image": image, **container}]}
            },
        },
        "status": {"readyReplicas": ready},
    }


def operator(**changes: Any) -> Object:
    image = changes.pop("image", "ghcr.io/noctaya/noctaya:0.5.0")
    args = changes.pop("args", ["--leader-elect=true"])
    return deployment("noctaya-system", "noctaya", OPERATOR_LABELS, image=image, args=args, **changes)


def keda(**changes: Any) -> Object:
    labels = {"app.kubernetes.io/name": "keda-operator"}
    return deployment("keda", "keda-operator", labels, image="ghcr.io/kedacore/keda:2.20.2", **changes)


def lease(*, holder: str = "operator-1_x", renewed: str = "2026-11-30T09:59:55.000000Z") -> Object:
    return {
        "metadata": {"name": names.LEADER_LEASE, "namespace": "noctaya-system"},
        "spec": {"holderIdentity": holder, "renewTime": renewed},
    }


def established(kind: str = "Established") -> Object:
    return {"status": {"conditions": [{"type": kind, "status": "True"}]}}
