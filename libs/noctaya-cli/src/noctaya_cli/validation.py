"""`noctaya validate`: what is wrong with manifests, without running them. Reads files only."""

from dataclasses import dataclass
from pathlib import Path

from noctaya_api.manifests import ManifestError, Manifests, load_manifests
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService

from noctaya_cli.planning import plan_probes
from noctaya_cli.rendering import (
    PlanError,
    render_container,
    resolve_keep,
    resolve_runtime,
    resolve_source,
    subject_of,
)


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a validation: problems, and one line per object and per remark."""

    problems: tuple[str, ...]
    summary: tuple[str, ...] = ()


def validate(paths: list[Path]) -> Report:
    """Check every object by itself, and services against the runtimes of the same files if any."""
    try:
        manifests = load_manifests(paths)
    except ManifestError as error:
        return Report(problems=tuple(str(problem) for problem in error.problems))
    problems: list[str] = []
    summary: list[str] = []
    for runtime in manifests.runtimes:
        try:
            summary.append(describe_runtime(runtime))
        except PlanError as error:
            problems.append(error.located(manifests.places))
    for service in manifests.services:
        try:
            summary.append(describe_service(service, manifests))
        except PlanError as error:
            problems.append(error.located(manifests.places))
    summary += [str(note) for note in manifests.notes]
    if not problems and not (manifests.services or manifests.runtimes):
        problems.append("no LLMService or InferenceRuntime in " + ", ".join(map(str, paths)))
    return Report(problems=tuple(problems), summary=tuple(summary))


def describe_runtime(runtime: InferenceRuntime) -> str:
    """One line about a runtime; raises PlanError for a probe of a port that it doesn't have."""
    plan_probes(runtime)
    spec = runtime.spec
    return f"{subject_of(runtime)}: {spec.family} on {spec.vendor}, image {spec.container.image}"


def describe_service(service: LLMService, manifests: Manifests) -> str:
    """One line about a service, rendered on its runtime when that is known; raises PlanError."""
    source = resolve_source(service)
    scaling = service.spec.scaling
    line = f"{subject_of(service)}: {source.uri}, {scaling.min} to {scaling.max} replicas"
    if (keep := resolve_keep(service)) is not None:
        line += f", kept {keep.text}"
    if not manifests.runtimes:
        wanted = service.spec.runtime
        vendors = " or ".join(wanted.selector.vendor) if wanted.selector is not None else ""
        return f"{line}, runtime {wanted.name or f'of vendor {vendors}'} (not among these files)"
    runtime = resolve_runtime(service, manifests.runtimes)
    rendered = render_container(service, runtime, model_path=source.path)
    words = " ".join((*rendered.command, *rendered.arguments))
    return f"{line}, runtime {runtime.name}: {words or runtime.spec.container.image}"
