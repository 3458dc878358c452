"""KEDA's CRDs are made as its kustomization makes them."""

from __future__ import annotations

import pytest
from noctaya_apiserver import BuildError, keda


def test_kedas_patches_are_carried_out() -> None:
    document = {"a": {"list": [{"required": ["x"]}], "gone": 1}}
    keda.patch(
        document,
        [
            {"op": "add", "path": "/a/list/0/required/-", "value": "y"},
            {"op": "add", "path": "/a/minimum", "value": 0},
            {"op": "remove", "path": "/a/gone"},
        ],
    )
    assert document == {"a": {"list": [{"required": ["x", "y"]}], "minimum": 0}}
    with pytest.raises(BuildError, match="'move'"):
        keda.patch(document, [{"op": "move", "path": "/a/minimum", "from": "/b"}])
