"""The InferenceRuntimes of the cluster, parsed once for each change.

One that can't be parsed is set aside with the reason: services pinned to it are told, all others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from noctaya_api.v1alpha1 import InferenceRuntime
from pydantic import ValidationError

from noctaya_operator.kube.objects import Key, Object, deleting, key_of
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.malformed import explain


class RuntimeCatalog:
    """Follows the reflector of the runtimes."""

    def __init__(self, reflector: Reflector) -> None:
        self._parsed: dict[Key, InferenceRuntime] = {}
        self._broken: dict[Key, str] = {}
        self._listeners: list[Callable[[set[str]], None]] = []
        reflector.subscribe(self._changed)

    def all(self) -> Sequence[InferenceRuntime]:
        """Every runtime that can be used, in order of name; one that is being deleted is still used."""
        return [self._parsed[key] for key in sorted(self._parsed)]

    @property
    def broken(self) -> Mapping[str, str]:
        """Why runtimes can't be parsed, by name."""
        return {key.name: why for key, why in self._broken.items()}

    def subscribe(self, listener: Callable[[set[str]], None]) -> None:
        """Call `listener` with the wishes (see `caches.wishes`) that a change may answer differently."""
        self._listeners.append(listener)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _desired(old) == _desired(new):
            return
        shown = new if new is not None else old
        if shown is None:
            return
        key = key_of(shown)
        self._parsed.pop(key, None)
        self._broken.pop(key, None)
        if new is not None:
            try:
                self._parsed[key] = InferenceRuntime.model_validate(new)
            except ValidationError as error:
                self._broken[key] = explain(error)
        affected = set(_wishes(old)) | set(_wishes(new))
        for listener in self._listeners:
            listener(affected)


def _desired(obj: Object) -> tuple[object, bool]:
    return obj.get("spec"), deleting(obj)


def _wishes(runtime: Object | None) -> Iterator[str]:
    if runtime is None:
        return
    yield f"name:{key_of(runtime).name}"
    spec = runtime.get("spec")
    if isinstance(spec, Mapping) and spec.get("vendor"):
        yield f"vendor:{spec['vendor']}"
