"""What the API accepts and no pass of the operator could ever render: bad model URIs, bad templates,
reserved features.

The schemas leave these to the operator, which reports them on the service. Whoever validates manifests
before they reach a cluster wants to know at once, with the field.
"""

from collections.abc import Iterator, Sequence

from noctaya_api.model_source import ModelSourceError
from noctaya_api.structural import Path
from noctaya_api.template import TemplateContext, TemplateError, render
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.llmservice_delivery import CacheStrategy
from noctaya_api.v1alpha1.llmservice_scaling import ScalingMetric

Finding = tuple[Path, str]

_ANY = TemplateContext(model_path="", service_name="", service_namespace="")


def preflight_service(service: LLMService) -> Iterator[Finding]:
    """Fields of a service that would make every reconcile fail, with the reason."""
    spec = service.spec
    if spec.model.source is None:
        yield ("spec", "model", "catalogRef"), "is reserved for a later version; use source.uri"
    else:
        try:
            spec.model.source.parsed()
        except ModelSourceError as error:
            yield ("spec", "model", "source", "uri"), str(error)
    if spec.resources.fraction is not None:
        yield ("spec", "resources", "fraction"), "is reserved for a later version; use whole accelerators"
    if spec.scaling.metric is ScalingMetric.KV_CACHE_UTIL:
        yield ("spec", "scaling", "metric"), "kvCacheUtil is reserved for a later version; use queueDepth"
    if spec.cache.strategy is CacheStrategy.BAKED_IMAGE:
        yield ("spec", "cache", "strategy"), "BakedImage is reserved for a later version"
    yield from _templates(spec.runtime.args_override, ("spec", "runtime", "argsOverride"))


def preflight_runtime(runtime: InferenceRuntime) -> Iterator[Finding]:
    """Fields of a runtime that would make every service that selects it fail, with the reason."""
    container = runtime.spec.container
    path: Path = ("spec", "container")
    yield from _templates(container.command, (*path, "command"))
    yield from _templates(container.args, (*path, "args"))
    for index, variable in enumerate(container.env):
        if variable.value is not None:
            yield from _template(variable.value, (*path, "env", index, "value"))
    scheduler = runtime.spec.accelerator.scheduler
    if scheduler is not None and scheduler.queue and scheduler.name != "volcano":
        yield ("spec", "accelerator", "scheduler", "queue"), "needs the scheduler name volcano"


def _templates(texts: Sequence[str], path: Path) -> Iterator[Finding]:
    for index, text in enumerate(texts):
        yield from _template(text, (*path, index))


def _template(text: str, path: Path) -> Iterator[Finding]:
    try:
        render(text, _ANY)
    except TemplateError as error:
        yield path, str(error)
