"""A handler that keeps its own copy of the world, and fails the test when what it hears makes no sense."""

from __future__ import annotations

from typing import Any

from noctaya_operator.kube.objects import Key, key_of, uid_of

Object = dict[str, Any]


class Follower:
    """Heard changes, applied to `world`."""

    def __init__(self) -> None:
        self.world: dict[Key, Object] = {}
        self.heard: list[tuple[str, str]] = []
        self.faults: list[str] = []

    def __call__(self, old: Object | None, new: Object | None) -> None:
        key = key_of(new or old or {})
        known = self.world.get(key)
        if old != known:
            self.faults.append(f"{key}: heard a change from {old}, but {known} was known")
        if old is not None and new is not None and uid_of(old) != uid_of(new):
            self.faults.append(f"{key}: one change between two different objects")
        if old is not None and old == new:
            self.faults.append(f"{key}: a change that changes nothing")
        if new is None:
            self.world.pop(key, None)
            self.heard.append(("deleted", key.name))
        else:
            self.world[key] = new
            self.heard.append(("created" if old is None else "changed", key.name))
