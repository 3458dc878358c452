"""The serving container as text: command, arguments, environment, with every template rendered.

An entry of the runtime's environment wins over one of ours with the same name, and no name appears twice:
Kubernetes refuses server-side apply of a list with two entries under one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from noctaya_api import names
from noctaya_api.conditions import StepReason
from noctaya_api.model_source import ModelSource, Scheme
from noctaya_api.template import TemplateContext, TemplateError, render, render_args
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.inference_runtime import Family

from noctaya_operator.plan_error import PlanError

EnvEntry = Mapping[str, Any]
REVISION_FLAG: Final = "--revision"
NAME_FLAG: Final = "--served-model-name"
_TAKE_FLAGS: Final = frozenset({Family.VLLM, Family.SGLANG})
HOME: Final = "/tmp"  # noqa: S108  in the engine's own file system
USER: Final = "engine"
MODULES_CACHE: Final = "/tmp/hf-modules"  # noqa: S108  in the engine's own file system


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What runs in the serving container."""

    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[EnvEntry, ...]
    revision_unsaid: bool
    """Whether the model URI names a revision that nothing tells the engine."""
    token_secret: str
    """Secret whose token the engine needs to fetch its weights itself; empty for none."""


def plan_serving(
    service: LLMService, runtime: InferenceRuntime, source: ModelSource, *, cached: bool, directory: str = ""
) -> Serving:
    """Render the container's text.

    `cached` says that there is a volume at `/cache`; `directory` is where prewarmed weights lie, empty when
    the engine fetches them by itself. Raises PlanError.
    """
    context = TemplateContext(
        model_path=directory or source.path, service_name=service.name, service_namespace=service.namespace
    )
    container, override = runtime.spec.container, service.spec.runtime.args_override
    try:
        command = render_args(container.command, context)
        args = render_args(container.args, context)
        extra = render_args(override, context)
    except TemplateError as error:
        raise PlanError(StepReason.RENDER, f"template in {error}") from error
    words = (*command, *args, *extra)
    unsaid = bool(source.revision) and not directory and not _has_flag(words, REVISION_FLAG)
    takes_flags = runtime.spec.family in _TAKE_FLAGS
    if unsaid and takes_flags:
        args += [REVISION_FLAG, source.revision]
        unsaid = False
    if directory and source.is_hub and takes_flags and not _has_flag(words, NAME_FLAG):
        # Clients go on naming the model as its hub does.
        args += [NAME_FLAG, source.path]
    token = _token_secret(service, source) if not directory else ""
    ours = (
        model_env(source),
        offline_env(source) if directory else reach_env(source, token=token),
        cache_env() if cached else (),
        user_env(runtime),
    )
    return Serving(
        command=tuple(command),
        args=(*args, *extra),
        env=_merged(_own_env(runtime, context), *ours),
        revision_unsaid=unsaid,
        token_secret=token,
    )


def _has_flag(words: Iterable[str], flag: str) -> bool:
    return any(word.split("=", 1)[0] == flag for word in words)


def _token_secret(service: LLMService, source: ModelSource) -> str:
    given = service.spec.model.source
    if source.scheme is not Scheme.HF or given is None or given.secret_ref is None:
        return ""
    return given.secret_ref.name


def offline_env(source: ModelSource) -> tuple[EnvEntry, ...]:
    """Environment of an engine whose weights are a directory: nothing is to be looked up in a hub, and code
    that comes with a model is not unpacked into a cache that may be mounted read-only."""
    if not source.is_hub:
        return ()
    values = {
        names.ENV_HF_OFFLINE: "1",
        names.ENV_TRANSFORMERS_OFFLINE: "1",
        names.ENV_HF_MODULES_CACHE: MODULES_CACHE,
    }
    if source.scheme is Scheme.MODELSCOPE:
        values[names.ENV_MODELSCOPE_OFFLINE] = "1"
    return tuple({"name": name, "value": value} for name, value in values.items())


def reach_env(source: ModelSource, *, token: str) -> tuple[EnvEntry, ...]:
    """Environment of an engine that fetches its weights itself: where the hub is, and the token's file."""
    values = {}
    if source.endpoint and source.scheme is Scheme.HF:
        values[names.ENV_HF_ENDPOINT] = source.endpoint
    if source.endpoint and source.scheme is Scheme.MODELSCOPE:
        values[names.ENV_MODELSCOPE_DOMAIN] = urlsplit(source.endpoint).netloc
    if token:
        values[names.ENV_HF_TOKEN_PATH] = f"{names.MODEL_SECRET_DIR}/{names.MODEL_TOKEN_KEY}"
    return tuple({"name": name, "value": value} for name, value in values.items())


def model_env(source: ModelSource) -> tuple[EnvEntry, ...]:
    """Environment that the kind of source needs, in serving and in prewarming."""
    return tuple({"name": name, "value": value} for name, value in source.env.items())


def cache_env() -> tuple[EnvEntry, ...]:
    """Environment that points hub clients into the cache."""
    return (
        {"name": names.ENV_HF_HOME, "value": names.HF_CACHE_DIR},
        {"name": names.ENV_MODELSCOPE_CACHE, "value": names.MODELSCOPE_CACHE_DIR},
    )


def user_env(runtime: InferenceRuntime) -> tuple[EnvEntry, ...]:
    """Environment of an engine that runs as a user its image may not know: such a user has `/` as home, where
    it may not write, and no name, which Python's `getpass` fails over."""
    asked = runtime.spec.pod_security
    if asked is None or not asked.run_as_user:
        return ()
    return ({"name": "HOME", "value": HOME}, {"name": "USER", "value": USER})


def _own_env(runtime: InferenceRuntime, context: TemplateContext) -> list[EnvEntry]:
    entries: dict[str, EnvEntry] = {}
    for variable in runtime.spec.container.env:
        entry = variable.manifest()
        if variable.value is not None:
            try:
                entry["value"] = render(variable.value, context)
            except TemplateError as error:
                # Its text may hold a secret, and a status is read by more people than a runtime.
                where = f"environment variable {variable.name}, character {error.column}"
                raise PlanError(StepReason.RENDER, f"template in {where}: {error.message}") from error
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
