"""Version v1alpha1 of the API: the models of both custom resources."""

from noctaya_api.v1alpha1.inference_runtime import InferenceRuntime
from noctaya_api.v1alpha1.llmservice import LLMService

__all__ = ["InferenceRuntime", "LLMService"]
