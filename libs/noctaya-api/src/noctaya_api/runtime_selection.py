"""Which InferenceRuntime serves an LLMService.

A pinned name is taken as it is. Otherwise the vendors are walked in the order the service prefers them; in
the first one that has any runtime the highest priority wins, and a tie is an error rather than a guess.
"""

from collections.abc import Iterable

from noctaya_api.v1alpha1 import InferenceRuntime, LLMService


class RuntimeSelectionError(ValueError):
    """No single runtime can be selected."""


class RuntimeNotFound(RuntimeSelectionError):
    """The pinned runtime doesn't exist, or no runtime has one of the vendors."""


class RuntimeAmbiguous(RuntimeSelectionError):
    """Several runtimes of the chosen vendor share the highest priority."""


def select_runtime(service: LLMService, runtimes: Iterable[InferenceRuntime]) -> InferenceRuntime:
    """The runtime for a service. Raises RuntimeNotFound or RuntimeAmbiguous."""
    wanted = service.spec.runtime
    candidates = list(runtimes)
    if wanted.name:
        for runtime in candidates:
            if runtime.name == wanted.name:
                return runtime
        raise RuntimeNotFound(f"InferenceRuntime {wanted.name!r} does not exist")
    vendors = wanted.selector.vendor if wanted.selector else []
    for vendor in vendors:
        offered = [runtime for runtime in candidates if runtime.spec.vendor is vendor]
        if offered:
            return _highest(offered)
    raise RuntimeNotFound(f"no InferenceRuntime has the vendor {' or '.join(vendors)}")


def may_select(service: LLMService, runtime: InferenceRuntime) -> bool:
    """Whether a change of this runtime can change what is selected for the service."""
    wanted = service.spec.runtime
    if wanted.name:
        return wanted.name == runtime.name
    return wanted.selector is not None and runtime.spec.vendor in wanted.selector.vendor


def _highest(offered: list[InferenceRuntime]) -> InferenceRuntime:
    top = max(runtime.spec.priority for runtime in offered)
    tied = [runtime for runtime in offered if runtime.spec.priority == top]
    if len(tied) > 1:
        names = ", ".join(sorted(runtime.name for runtime in tied))
        raise RuntimeAmbiguous(
            f"the InferenceRuntimes {names} of vendor {tied[0].spec.vendor} share the priority {top}; "
            "pin one of them with spec.runtime.name"
        )
    return tied[0]
