"""What the API accepts and no pass of the operator could ever render: bad model URIs, bad templates,
reserved features.

The schemas leave these to the operator, which reports them on the service. Whoever validates manifests
before they reach a cluster wants to know at once, with the field.
"""

from collections.abc import Iterator, Sequence

from noctaya_api.model_source import ModelSource, ModelSourceError, Scheme
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
            source = spec.model.source.parsed()
        except ModelSourceError as error:
            yield ("spec", "model", "source", "uri"), str(error)
        else:
            yield from _delivery(service, source)
    if spec.resources.fraction is not None:
        yield ("spec", "resources", "fraction"), "is reserved for a later version; use whole accelerators"
    if spec.scaling.metric is ScalingMetric.KV_CACHE_UTIL:
        yield ("spec", "scaling", "metric"), "kvCacheUtil is reserved for a later version; use queueDepth"
    if spec.cache.strategy is CacheStrategy.BAKED_IMAGE:
        yield ("spec", "cache", "strategy"), "BakedImage is reserved for a later version"
    yield from _templates(spec.runtime.args_override, ("spec", "runtime", "argsOverride"))


def _delivery(service: LLMService, source: ModelSource) -> Iterator[Finding]:
    given, cache = service.spec.model.source, service.spec.cache
    kept = cache.strategy is not CacheStrategy.NONE
    if source.scheme in {Scheme.OCI, Scheme.S3} and not kept:
        yield (
            ("spec", "cache", "strategy"),
            f"None can't hold the weights of an {source.scheme}:// model; "
            "use NodeLocalPVC, SharedPVC or HostPath",
        )
    secret = given is not None and given.secret_ref is not None
    if source.scheme is Scheme.MODELSCOPE and secret and not (cache.prewarm and kept):
        path = ("spec", "model", "source", "secretRef")
        yield path, "no engine takes the token of ModelScope from a file; set cache.prewarm and keep a cache"


def preflight_runtime(runtime: InferenceRuntime) -> Iterator[Finding]:
    """Fields of a runtime that would make every service that selects it fail, with the reason."""
    container = runtime.spec.container
    path: Path = ("spec", "container")
    yield from _templates(container.command, (*path, "command"))
    yield from _templates(container.args, (*path, "args"))
    for index, variable in enumerate(container.env):
        if variable.value is not None:
            yield from _value(variable.value, (*path, "env", index, "value"))
    scheduler = runtime.spec.accelerator.scheduler
    if scheduler is not None and scheduler.queue and scheduler.name != "volcano":
        yield ("spec", "accelerator", "scheduler", "queue"), "needs the scheduler name volcano"


def _templates(texts: Sequence[str], path: Path) -> Iterator[Finding]:
    for index, text in enumerate(texts):
        yield from _template(text, (*path, index))


def _value(text: str, path: Path) -> Iterator[Finding]:
    """Of a variable, which may hold a secret: the place is told, not the text."""
    try:
        render(text, _ANY)
    except TemplateError as error:
        yield path, f"character {error.column}: {error.message}"


def _template(text: str, path: Path) -> Iterator[Finding]:
    try:
        render(text, _ANY)
    except TemplateError as error:
        yield path, str(error)
