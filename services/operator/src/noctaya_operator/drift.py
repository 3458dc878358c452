"""Whether an object in the cluster has to be applied again, without asking the server.

Two questions. Does a field we set have another value? And do we still own a field that we no longer set,
which only a new apply would give up? The second is answered by the server's own record of who owns what
(`managedFields`), so a restart of the operator forgets nothing. Fields nobody set, server defaults and what
others added are no drift.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from noctaya_api import names
from noctaya_api.quantity import parse_quantity

from noctaya_operator.kube.objects import Object

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port", "protocol"),
}
"""Lists whose elements are told apart by keys (from the API's `x-kubernetes-list-map-keys`); all others are
one value."""
REPLICAS_ONLY: Final[Object] = {"f:spec": {"f:replicas": {}}}
"""What the manager that created a backend at zero keeps of it."""
_CREATED: Final[Object] = {
    "manager": names.CREATE_FIELD_MANAGER,
    "operation": "Update",
    "fieldsV1": {"f:spec": {"f:template": {}}},
}
"""What is kept of that manager's entry while it owns more."""
_ASSUMED: Final = {"protocol": "TCP"}
_QUANTITIES: Final = frozenset({"limits", "requests"})
_SERVERS_OWN: Final = frozenset({"uid", "resourceVersion", "name", "namespace"})


def drifted(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether applying `desired` would change `live`."""
    return differs(desired, live) or owns_more(owned_fields(live), desired)


def differs(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether a field of `desired` has another value in `live`."""
    for field, wanted in desired.items():
        if field == "metadata":
            given = {name: value for name, value in wanted.items() if name not in _SERVERS_OWN}
            if not _covers(live.get("metadata") or {}, given):
                return True
        elif field not in {"apiVersion", "kind", "status"} and not _same(live.get(field), wanted, field):
            return True
    return False


def owned_fields(live: Mapping[str, Any], *, manager: str = names.FIELD_MANAGER) -> Mapping[str, Any]:
    """The fields that `manager` applied, in the server's notation (`fieldsV1`)."""
    for entry in managers(live):
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ):
            fields = entry.get("fieldsV1")
            if isinstance(fields, str):
                return _parsed(fields)
            return fields if isinstance(fields, Mapping) else {}
    return {}


def managers(live: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The entries of `managedFields`."""
    metadata = live.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def keep_own_fields(obj: Object) -> None:
    """Reduce `managedFields` to what `owned_fields` and `owned_by_creation` read, as text that equal objects
    share.

    It is a third of an object otherwise. The owner's uid is left out of it: with it no two would be equal.
    """
    owned, created = owned_fields(obj), owned_by_creation(obj)
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return
    metadata.pop("managedFields", None)
    if created:
        metadata["managedFields"] = [dict(_CREATED)]
    if not owned:
        return
    about = owned.get("f:metadata")
    if isinstance(about, Mapping):
        rest = {name: value for name, value in about.items() if name != "f:ownerReferences"}
        owned = {**owned, "f:metadata": rest}
    entry = {"manager": names.FIELD_MANAGER, "operation": "Apply", "fieldsV1": _shared(_text(owned))}
    metadata["managedFields"] = [*metadata.get("managedFields", []), entry]


def owned_by_creation(live: Mapping[str, Any]) -> bool:
    """Whether the manager that created a backend at zero owns more of it than the replicas."""
    return any(only_replicas(entry) != entry for entry in managers(live))


def only_replicas(entry: Mapping[str, Any]) -> Object:
    """An entry of `managedFields` as it should be: of the manager that created a backend only the replicas
    stay. As long as it owns more, nothing that an apply leaves out would go away."""
    if entry.get("manager") != names.CREATE_FIELD_MANAGER or entry.get("operation") != "Update":
        return dict(entry)
    spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
    fields = REPLICAS_ONLY if "f:replicas" in spec else {}
    return {**entry, "fieldsV1": fields}


def owns_more(owned: Mapping[str, Any], desired: Any) -> bool:
    """Whether an owned field (in the server's notation) is missing in `desired`."""
    for name, inner in owned.items():
        if name == ".":
            continue
        kind, _, rest = name.partition(":")
        if kind == "f":
            if not isinstance(desired, Mapping) or rest not in desired:
                return True
            found = desired[rest]
        elif kind == "k":
            found = _element(desired, json.loads(rest))
            if found is None:
                return True
        elif kind == "v":
            if not isinstance(desired, list) or json.loads(rest) not in desired:
                return True
            continue
        else:
            continue
        if inner and owns_more(inner, found):
            return True
    return False


def _element(elements: Any, keys: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not isinstance(elements, list):
        return None
    for element in elements:
        if isinstance(element, Mapping) and all(
            element.get(name, _ASSUMED.get(name)) == value for name, value in keys.items()
        ):
            return element
    return None


def _same(live: Any, desired: Any, field: str) -> bool:
    if live is None:
        return desired in (None, "", False) or desired in ({}, [])
    if isinstance(desired, Mapping):
        if not isinstance(live, Mapping):
            return False
        if field in _QUANTITIES:
            return all(_same_quantity(live.get(name), amount) for name, amount in desired.items())
        return _covers(live, desired)
    if isinstance(desired, list):
        return isinstance(live, list) and _same_list(live, desired, field)
    return bool(live == desired) and isinstance(live, bool) == isinstance(desired, bool)


def _covers(live: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    return all(_same(live.get(name), value, name) for name, value in desired.items())


def _same_list(live: list[Any], desired: list[Any], field: str) -> bool:
    keys = _KEYS.get(field)
    if keys is None or not all(isinstance(element, Mapping) for element in desired):
        return len(live) == len(desired) and all(map(_same, live, desired, [field] * len(live)))
    by_key = {_key(element, keys): element for element in live if isinstance(element, Mapping)}
    found = [by_key.get(_key(element, keys)) for element in desired]
    if not all(map(_same, found, desired, ["element"] * len(found))):
        return False
    # Environment variables may refer to those before them, so their order is part of their meaning.
    places = [live.index(element) for element in found]
    return places == sorted(places)


def _key(element: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(element.get(name, _ASSUMED.get(name)) for name in keys)


def _same_quantity(live: Any, desired: Any) -> bool:
    try:
        return parse_quantity(live) == parse_quantity(desired)
    except (ValueError, TypeError):
        return bool(live == desired)


def _text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), sort_keys=True)


@lru_cache(maxsize=512)
def _shared(text: str) -> str:
    return text


@lru_cache(maxsize=512)
def _parsed(text: str) -> Mapping[str, Any]:
    fields = json.loads(text)
    return fields if isinstance(fields, Mapping) else {}
