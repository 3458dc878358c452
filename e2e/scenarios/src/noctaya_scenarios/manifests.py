"""Runtimes and services of the scenarios: the stub as the engine, times that suit a test."""

from __future__ import annotations

from typing import Any, Final

from noctaya_api import names

Object = dict[str, Any]

STUB_IMAGE: Final = "noctaya/model-stub:0.5.0"
MISSING_IMAGE: Final = "noctaya/no-such-image:0.0.0"
ACCELERATOR: Final = "noctaya.io/fake-gpu"
MORE_THAN_ANY_NODE_HAS: Final = 64
"""Accelerators that no node has: a Pod that asks for them is never scheduled."""


def stub_runtime(name: str, *, image: str = STUB_IMAGE, drain: bool = True, **environment: str) -> Object:
    """An InferenceRuntime that runs the stub; keyword arguments are its environment."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.INFERENCE_RUNTIME_KIND,
        "metadata": {"name": name},
        "spec": {
            "family": "custom",
            "vendor": "nvidia",
            "container": {
                "image": image,
                "args": ["{{ .Model.Path }}", "--served-model-name", "{{ .Service.Name }}"],
                "env": [{"name": key, "value": value} for key, value in environment.items()],
                "port": {"containerPort": 8000},
            },
            "accelerator": {"resourceName": ACCELERATOR},
            "health": {
                "startup": {**_health(), "failureThreshold": 120},
                "readiness": _health(),
            },
            "lifecycle": {"preStopDrain": drain, "terminationGracePeriodSeconds": 5},
        },
    }


def service_spec(runtime: str, **changes: Any) -> Object:
    """The spec of an LLMService; keyword arguments are merged in, field by field."""
    base: Object = {
        "model": {"source": {"uri": "hf://stub/model"}},
        "runtime": {"name": runtime},
        "cache": {"strategy": "None"},
        "scaling": {
            "min": 0,
            "max": 1,
            "target": 10,
            "activationTimeout": "90s",
            "scaleDownStabilization": "5s",
            "drainTimeout": "5s",  # slept through whole by every Pod that leaves, streams or not
        },
        "endpoint": {"coldStart": {"heartbeatInterval": "500ms"}},
    }
    return merged(base, changes)


def merged(base: Object, changes: Object) -> Object:
    """A copy with changes merged in; a field that is None goes."""
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def _health() -> Object:
    return {"httpGet": {"path": names.PATH_BACKEND_HEALTH, "port": "http"}, "periodSeconds": 1}
