"""The serving container as text: command, arguments, environment, with every template rendered.

An entry of the runtime's environment wins over one of ours with the same name, and no name appears twice:
Kubernetes refuses server-side apply of a list with two entries under one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import StepReason
from noctaya_api.model_source import ModelSource
from noctaya_api.template import TemplateContext, TemplateError, render, render_args
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.inference_runtime import Family

from noctaya_operator.plan_error import PlanError

EnvEntry = Mapping[str, Any]
REVISION_FLAG: Final = "--revision"
_TAKE_REVISION: Final = frozenset({Family.VLLM, Family.SGLANG})


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What runs in the serving container."""

    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[EnvEntry, ...]
    revision_unsaid: bool
    """Whether the model URI names a revision that nothing tells the engine."""


def plan_serving(
    service: LLMService, runtime: InferenceRuntime, source: ModelSource, *, cached: bool
) -> Serving:
    """Render the container's text. `cached` says that there is a volume at `/cache`. Raises PlanError."""
    context = TemplateContext(
        model_path=source.path, service_name=service.name, service_namespace=service.namespace
    )
    container, override = runtime.spec.container, service.spec.runtime.args_override
    try:
        command = render_args(container.command, context)
        args = render_args(container.args, context)
        extra = render_args(override, context)
    except TemplateError as error:
        raise PlanError(StepReason.RENDER, f"template in {error}") from error
    said = any(part.split("=", 1)[0] == REVISION_FLAG for part in (*command, *args, *extra))
    unsaid = bool(source.revision) and not said
    if unsaid and runtime.spec.family in _TAKE_REVISION:
        args += [REVISION_FLAG, source.revision]
        unsaid = False
    return Serving(
        command=tuple(command),
        args=(*args, *extra),
        env=_merged(_own_env(runtime, context), model_env(source), cache_env() if cached else ()),
        revision_unsaid=unsaid,
    )


def model_env(source: ModelSource) -> tuple[EnvEntry, ...]:
    """Environment that the kind of source needs, in serving and in prewarming."""
    return tuple({"name": name, "value": value} for name, value in source.env.items())


def cache_env() -> tuple[EnvEntry, ...]:
    """Environment that points hub clients into the cache."""
    return (
        {"name": names.ENV_HF_HOME, "value": names.HF_CACHE_DIR},
        {"name": names.ENV_MODELSCOPE_CACHE, "value": names.MODELSCOPE_CACHE_DIR},
    )


def _own_env(runtime: InferenceRuntime, context: TemplateContext) -> list[EnvEntry]:
    entries: dict[str, EnvEntry] = {}
    for variable in runtime.spec.container.env:
        entry = variable.manifest()
        if variable.value is not None:
            try:
                entry["value"] = render(variable.value, context)
            except TemplateError as error:
                raise PlanError(
                    StepReason.RENDER, f"template in environment variable {variable.name}: {error}"
                ) from error
        # Of two entries of the runtime itself the later one counts, as it would in the container.
        entries.pop(variable.name, None)
        entries[variable.name] = entry
    return list(entries.values())


def _merged(first: Iterable[EnvEntry], *others: Iterable[EnvEntry]) -> tuple[EnvEntry, ...]:
    merged = {entry["name"]: entry for entry in first}
    for entries in others:
        for entry in entries:
            merged.setdefault(entry["name"], entry)
    return tuple(merged.values())
