"""Sets of values that the tests render, lint and send to an API server: each chart in its usual shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Values = dict[str, Any]

_PLACED: Final[Values] = {
    "nodeSelector": {"pool": "small"},
    "tolerations": [{"key": "small", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    "priorityClassName": "system-cluster-critical",
    "podLabels": {"team": "models"},
    "podAnnotations": {"note": "pod"},
    "annotations": {"note": "object"},
    "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "100m"}},
    "extraEnv": [{"name": "LANG", "value": "C"}],
}
_AFFINITY: Final[Values] = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}]
            }
        }
    }
}
_EVERYWHERE: Final[Values] = {
    "global": {"imageRegistry": "mirror.example.com:5000", "imagePullSecrets": ["mirror"]},
    "imagePullSecrets": [{"name": "ours"}],
    "commonLabels": {"stage": "test"},
    "commonAnnotations": {"owner": "platform"},
}
_TRACED: Final[Values] = {
    "tracing": {
        "endpoint": "http://collector.observability:4318",
        "headersSecret": "collector",
        "resourceAttributes": {"deployment.environment": "test"},
        "samplingRatio": 0.25,
    }
}
_BACKEND: Final[Values] = {"name": "vllm", "selector": {"app": "vllm"}, "targetPort": "http", "port": 8000}
_TLS: Final[Values] = {"serverSecret": "scaler-tls", "authenticationRef": {"name": "keda-client"}}
_DIGEST: Final = "sha256:" + "5" * 64

MATRIX: Final[dict[str, dict[str, Values]]] = {
    "operator": {
        "defaults": {},
        "one": {"operator": {"replicas": 1, "leaderElect": False}, "metrics": {"enabled": False}},
        "several gateways": {
            "gateway": {"replicas": 3},
            "image": {"tag": "1.2.3", "operator": f"noctaya@{_DIGEST}"},
        },
        "restricted": {"namespaces": ["default", "kube-public"], "crds": {"install": False}},
        "borrowed rights": {
            "serviceAccount": {"create": False, "name": "someone"},
            "rbac": {"create": False, "userRoles": {"create": False}},
        },
        "everything": {
            **_EVERYWHERE,
            **_TRACED,
            "operator": {
                **_PLACED,
                **_AFFINITY,
                "labels": {"kind": "operator"},
                "extraArgs": ["--retry-period=1s"],
            },
            "crds": {"annotations": {"note": "crd"}},
            "serviceAccount": {"annotations": {"role": "operator"}},
            "metrics": {
                "service": {"labels": {"scraped": "yes"}, "annotations": {"note": "service"}},
                "serviceMonitor": {
                    "enabled": True,
                    "namespace": "default",
                    "labels": {"release": "prometheus"},
                    "interval": "15s",
                    "scrapeTimeout": "5s",
                    "relabelings": [{"action": "labelmap", "regex": "x_(.+)"}],
                    "metricRelabelings": [{"action": "drop", "sourceLabels": ["__name__"], "regex": "go_.*"}],
                },
            },
            "networkPolicy": {
                "enabled": True,
                "metricsFrom": [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
                "egress": [{"ports": [{"port": 443}]}],
            },
        },
    },
    "gateway": {
        "one": {"backend": _BACKEND},
        "one with mutual TLS": {"backend": _BACKEND, "tls": _TLS, "gateway": {"coldStartMode": "reject"}},
        "in front of a Service": {
            "backend": {"name": "engine", "kind": "StatefulSet", "url": "http://engine.models.svc:8000"},
            "scaling": {"min": 1, "max": 4, "target": 2, "scaleDownStabilization": "90s"},
        },
        "several": {"backend": _BACKEND, "gateway": {"replicas": 2}, "tls": _TLS},
        "reporting elsewhere": {
            "backend": {"selector": {"app": "vllm"}},
            "aggregateScaler": {"url": "http://qwen-scaler.models.svc:9091"},
            "demandAuth": {"existingSecret": "qwen-demand-auth"},
            "networkPolicy": {"enabled": True},
        },
        "everything": {
            **_EVERYWHERE,
            **_TRACED,
            "name": "qwen",
            "image": {"pullPolicy": "Always"},
            "backend": {**_BACKEND, "healthPath": "/ready"},
            "gateway": {
                **_PLACED,
                **_AFFINITY,
                "replicas": 2,
                "maxQueue": 8,
                "activationTimeout": "90s",
                "heartbeats": False,
                "progress": True,
                "accessLog": "all",
                "drainTimeout": "1m30s",
                "modelIds": ["a", "b"],
                "corsOrigins": ["*"],
                "logLevel": "debug",
            },
            "service": {"type": "LoadBalancer", "port": 8080, "annotations": {"note": "service"}},
            "authentication": {
                "secretName": "keys",
                "secretKey": "all",
                "limits": {"requestsPerMinute": 600, "concurrentRequests": 8},
            },
            "scaling": {"annotations": {"autoscaling.keda.sh/paused": "true"}},
            "aggregateScaler": {**_PLACED, **_AFFINITY, "logLevel": "debug"},
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"},
            "networkPolicy": {
                "enabled": True,
                "clientsFrom": [{"podSelector": {}}],
                "kedaNamespace": "autoscaling",
            },
        },
    },
    "aggregate-scaler": {
        "usual": {"backend": {"name": "vllm"}},
        "without KEDA": {"scaling": {"enabled": False}, "demandAuth": {"existingSecret": "token"}},
        "everything": {
            **_EVERYWHERE,
            **_TRACED,
            "name": "qwen",
            "backend": {"name": "engine", "kind": "StatefulSet"},
            "gateways": {"count": 5, "maxQueue": 8, "from": [{"namespaceSelector": {}}]},
            "scaler": {**_PLACED, **_AFFINITY, "logLevel": "warning"},
            "tls": _TLS,
            "networkPolicy": {"enabled": True},
        },
    },
    "prewarm-agent": {
        "hub": {"source": {"uri": "hf://Qwen/Qwen3-8B@main"}, "claim": {"name": "models"}},
        "bucket": {
            "source": {
                "uri": "s3://models/qwen",
                "secretName": "s3",
                "region": "eu-central-1",
                "endpoint": "https://s3.example.com",
                "files": {"include": ["*.safetensors", "*.json"], "exclude": ["original/*"]},
            },
            "claim": {"name": "models", "path": "qwen/v1"},
            "job": {"deadline": "2h"},
        },
        "artifact": {"source": {"uri": f"oci://r.example.com/qwen@{_DIGEST}"}, "claim": {"name": "models"}},
        "everything": {
            **_EVERYWHERE,
            "source": {
                "uri": f"oci://r.example.com:5000/models/qwen@{_DIGEST}",
                "secretName": "registry",
                "endpoint": "http://r.example.com:5000",
            },
            "claim": {"name": "models"},
            "job": {
                **_PLACED,
                **_AFFINITY,
                "backoffLimit": 0,
                "ttlSecondsAfterFinished": 60,
                "stagingSize": "20Gi",
                "podSecurityContext": {"fsGroup": 1000},
                "schedulerName": "volcano",
            },
        },
    },
}


def cases() -> Iterator[tuple[str, str]]:
    """Every chart with the name of each of its sets."""
    for chart, shapes in MATRIX.items():
        yield from ((chart, shape) for shape in shapes)
