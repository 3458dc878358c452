"""The kinds the operator works with beyond Kubernetes' own: Noctaya's two, and KEDA's ScaledObject."""

from __future__ import annotations

from noctaya_api import names

from noctaya_operator.kube.resources import BUILT_IN, Resource

LLM_SERVICES = Resource(names.GROUP, names.VERSION, "llmservices", "LLMService")
INFERENCE_RUNTIMES = Resource(
    names.GROUP, names.VERSION, "inferenceruntimes", "InferenceRuntime", namespaced=False
)
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")

ALL: tuple[Resource, ...] = (*BUILT_IN, LLM_SERVICES, INFERENCE_RUNTIMES, SCALED_OBJECTS)
"""Every kind the operator's client knows."""
