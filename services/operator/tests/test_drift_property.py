"""Drift against server-side apply itself: applied is no drift, every change and every omission is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fake_apiserver.ownership import Manager, applied, updated
from hypothesis import given
from hypothesis import strategies as st
from noctaya_operator.drift import drifted, keep_own_fields
from noctaya_operator.kube.objects import Object

US = Manager("noctaya-operator", "Apply")
THEM = Manager("somebody", "Update")
NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.integers(1, 9), st.sampled_from(["x", "y", "z"]), st.just(True))
ITEMS = st.lists(
    st.fixed_dictionaries({"name": NAMES, "value": st.sampled_from(["1", "2"])}),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
LEAVES = st.one_of(SCALARS, st.lists(SCALARS, min_size=1, max_size=3))
MAPS = st.recursive(
    st.dictionaries(NAMES, LEAVES, min_size=1, max_size=3),
    lambda inner: st.dictionaries(NAMES, st.one_of(LEAVES, inner), min_size=1, max_size=3),
    max_leaves=8,
)
SPECS = st.builds(lambda tree, env: {**tree, "env": env}, MAPS, ITEMS)


def wrapped(spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}


def stored(spec: Object) -> Object:
    """The object after we applied it, as a cache keeps it."""
    live = applied(None, wrapped(spec), US, force=True, now="t")
    keep_own_fields(live)
    return live


@given(SPECS)
def test_what_was_applied_is_no_drift(spec: Object) -> None:
    assert not drifted(wrapped(spec), stored(spec))


@given(SPECS, st.dictionaries(st.sampled_from(["theirs", "defaulted"]), SCALARS))
def test_what_others_add_is_no_drift(spec: Object, added: Object) -> None:
    live = applied(None, wrapped(spec), US, force=True, now="t")
    changed = deepcopy(live)
    changed["spec"] |= added
    changed["spec"]["env"].append({"name": "theirs", "value": "9"})
    live = updated(live, changed, THEM, now="t")
    keep_own_fields(live)
    assert not drifted(wrapped(spec), live)


@given(SPECS, SPECS)
def test_drift_is_exactly_what_an_apply_would_change(before: Object, after: Object) -> None:
    live = applied(None, wrapped(before), US, force=True, now="t")
    again = applied(live, wrapped(after), US, force=True, now="t")
    kept = deepcopy(live)
    keep_own_fields(kept)
    assert drifted(wrapped(after), kept) is (shape(again["spec"]) != shape(live["spec"]))


def shape(value: Any) -> Any:
    """The value with True told from 1."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return (type(value).__name__, value)
