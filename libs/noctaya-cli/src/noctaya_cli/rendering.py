"""Rendering of a runtime for a service: the parts that `validate` and `run` share. Pure.

Errors name the object and the field, because manifests often hold many of both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from noctaya_api import names
from noctaya_api.keep import Keep, KeepError, keep_of
from noctaya_api.model_source import ModelSource, ModelSourceError
from noctaya_api.runtime_selection import RuntimeSelectionError, select_runtime
from noctaya_api.template import TemplateContext, TemplateError, render, render_args
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService

DEFAULT_NAMESPACE = "default"


class PlanError(Exception):
    """An object that is valid by itself can't be run or rendered as it is."""

    def __init__(self, subject: str, field: str, message: str) -> None:
        super().__init__(f"{subject}: {field}: {message}")
        self.subject = subject
        self.field = field
        self.message = message

    def located(self, places: Mapping[str, str]) -> str:
        """The message behind the place of the object (`file:line`), as far as that is known."""
        return " ".join(filter(None, (places.get(self.subject), str(self))))


@dataclass(frozen=True, slots=True)
class RenderedContainer:
    """Command, arguments and environment with all template actions replaced."""

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


def subject_of(item: LLMService | InferenceRuntime) -> str:
    """How messages name an object: `LLMService/name`."""
    return f"{item.kind}/{item.metadata.name}"


def namespace_of(service: LLMService) -> str:
    """The service's namespace; `default` when the manifest names none, as kubectl does."""
    return service.metadata.namespace or DEFAULT_NAMESPACE


def resolve_runtime(service: LLMService, runtimes: Iterable[InferenceRuntime]) -> InferenceRuntime:
    """The runtime of a service; raises PlanError."""
    try:
        return select_runtime(service, runtimes)
    except RuntimeSelectionError as error:
        field = "spec.runtime.name" if service.spec.runtime.name else "spec.runtime.selector.vendor"
        raise PlanError(subject_of(service), field, str(error)) from error


def resolve_source(service: LLMService) -> ModelSource:
    """Where the model comes from; raises PlanError."""
    subject, source = subject_of(service), service.spec.model.source
    if source is None:
        raise PlanError(subject, "spec.model.catalogRef", "is reserved for a later version; use source.uri")
    try:
        return source.parsed()
    except ModelSourceError as error:
        raise PlanError(subject, "spec.model.source.uri", str(error)) from error


def resolve_keep(service: LLMService) -> Keep | None:
    """What the annotation `keep` asks for; raises PlanError when it can't be read."""
    try:
        return keep_of(service.metadata.annotations)
    except KeepError as error:
        field = f"metadata.annotations[{names.ANNOTATION_KEEP}]"
        raise PlanError(subject_of(service), field, str(error)) from error


def render_container(service: LLMService, runtime: InferenceRuntime, *, model_path: str) -> RenderedContainer:
    """Render what the runtime's container runs for this service; raises PlanError.

    Entries of the environment that take their value from elsewhere (`valueFrom`) are left out; see
    planning.py.
    """
    context = TemplateContext(
        model_path=model_path, service_name=service.metadata.name, service_namespace=namespace_of(service)
    )
    container = runtime.spec.container

    def rendered(texts: Sequence[str], subject: str, field: str) -> tuple[str, ...]:
        try:
            return tuple(render_args(texts, context))
        except TemplateError as error:
            place = field if error.index is None else f"{field}[{error.index}]"
            raise PlanError(subject, place, f"character {error.column}: {error.message}") from error

    def rendered_value(name: str, value: str) -> str:
        try:
            return render(value, context)
        except TemplateError as error:
            field = f"spec.container.env[{name}].value"
            raise PlanError(
                subject_of(runtime), field, f"character {error.column}: {error.message}"
            ) from error

    return RenderedContainer(
        command=rendered(container.command, subject_of(runtime), "spec.container.command"),
        arguments=rendered(container.args, subject_of(runtime), "spec.container.args")
        + rendered(service.spec.runtime.args_override, subject_of(service), "spec.runtime.argsOverride"),
        environment=tuple(
            (entry.name, rendered_value(entry.name, entry.value or ""))
            for entry in container.env
            if entry.value_from is None
        ),
    )
