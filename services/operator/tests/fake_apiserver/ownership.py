"""managedFields of one object: who set what, kept in the object itself as the API server does."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from fake_apiserver.fields import Path, from_fields_v1, leaves, merge, prune, to_fields_v1


class ApplyConflict(Exception):
    """Another manager owns fields the patch changes."""

    def __init__(self, conflicts: dict[Path, str]) -> None:
        super().__init__(f"Apply failed with {len(conflicts)} conflicts: {conflicts}")
        self.conflicts = conflicts


@dataclass(frozen=True)
class Manager:
    """Key of one managedFields entry."""

    name: str
    operation: str
    subresource: str = ""


def owners_of(obj: dict[str, Any]) -> dict[Manager, set[Path]]:
    """Paths by manager."""
    entries = obj.get("metadata", {}).get("managedFields") or []
    return {
        Manager(entry["manager"], entry["operation"], entry.get("subresource", "")): from_fields_v1(
            entry.get("fieldsV1") or {}
        )
        for entry in entries
    }


def set_owners(obj: dict[str, Any], owners: dict[Manager, set[Path]], now: str) -> None:
    """Write the entries; unchanged ones keep their time."""
    metadata = obj.setdefault("metadata", {})
    before = {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry
        for entry in metadata.get("managedFields") or []
    }
    entries = []
    for manager, paths in owners.items():
        if not paths:
            continue
        entry: dict[str, Any] = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": obj.get("apiVersion", ""),
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(paths),
        }
        if manager.subresource:
            entry["subresource"] = manager.subresource
        old = before.get((manager.name, manager.operation, manager.subresource))
        if old is not None and old.get("fieldsV1") == entry["fieldsV1"]:
            entry["time"] = old["time"]
        entries.append(entry)
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)


def applied(
    live: dict[str, Any] | None, patch: dict[str, Any], manager: Manager, *, force: bool, now: str
) -> dict[str, Any]:
    """The object after server-side apply of `patch`. Raises `ApplyConflict` unless forced."""
    patch = copy.deepcopy(patch)
    new = leaves(patch)
    base: dict[str, Any] = copy.deepcopy(live) if live is not None else {}
    owners = owners_of(base)
    current = leaves(base)
    before = owners.get(manager, set())
    conflicts: dict[Path, str] = {}
    for path, value in new.items():
        if path in current and current[path] == value:
            continue
        for other, paths in owners.items():
            if other == manager:
                continue
            clashing = {owned for owned in paths if _overlaps(owned, path)}
            if clashing:
                conflicts[path] = other.name
                owners[other] = paths - clashing
    if conflicts and not force:
        raise ApplyConflict(conflicts)
    merged: dict[str, Any] = merge(base, patch)
    others = set().union(*(paths for other, paths in owners.items() if other != manager))
    # An item goes as a whole before its keys do, without which it would not be found any more.
    for path in sorted(before - set(new), key=lambda path: (-len(path), path[-1] != ".")):
        inside = path[:-1] if path[-1] == "." else path
        if not any(owned[: len(inside)] == inside for owned in others):
            prune(merged, path)
    owners[manager] = set(new)
    set_owners(merged, owners, now)
    return merged


def updated(
    live: dict[str, Any] | None, new: dict[str, Any], manager: Manager, *, now: str
) -> dict[str, Any]:
    """`new` with ownership as after an update: changed leaves go to `manager`, vanished ones to nobody."""
    before, after = leaves(live or {}), leaves(new)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    # Whoever writes managedFields themselves is believed, as by the real server.
    known = new if new.get("metadata", {}).get("managedFields") else live or {}
    owners = {
        other: {path for path in paths if path in after and path not in changed}
        for other, paths in owners_of(known).items()
    }
    owners[manager] = owners.get(manager, set()) | changed
    result = copy.deepcopy(new)
    if live is not None and "managedFields" in live.get("metadata", {}):
        entries = known.get("metadata", {}).get("managedFields")
        result.setdefault("metadata", {})["managedFields"] = copy.deepcopy(entries)
    set_owners(result, owners, now)
    return result


def _overlaps(one: Path, other: Path) -> bool:
    if one[-1] == "." or other[-1] == ".":
        return one == other
    length = min(len(one), len(other))
    return one[:length] == other[:length]
