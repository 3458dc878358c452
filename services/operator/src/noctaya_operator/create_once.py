"""Objects that are created once: their hashes, and what to do with one that already exists.

A cache claim and a prewarm Job can't be changed in place, so a changed wish is an error that asks for a
deliberate deletion. The annotation `create-once-hash` says what an existing object was made for:

* on a claim, the SHA-256 of its spec as Go writes JSON, which is what the v0.4 alpha stored too;
* on a Job, `data-` and the SHA-256 of what identifies the weights and their place. Images, Secrets and
  placement are not part of it: they say how the weights come, not which. A Job of the alpha carries the hash
  of its whole template, which nobody else can compute; it is recognised by not beginning with `data-`.

A missing or foreign hash is no reason to refuse: the object itself is looked at, and adopted if it fits.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import StepReason
from noctaya_api.quantity import parse_quantity

from noctaya_operator.kube.objects import (
    Object,
    annotations_of,
    controlled_by,
    controller_of,
    labels_of,
    owner_reference,
    owner_references_of,
    uid_of,
)
from noctaya_operator.object_names import ObjectRef
from noctaya_operator.plan_error import PlanError

_GO_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_DATA: Final = "data-"
_TRUE: Final = "true"


def go_json(value: Any) -> str:
    """Compact JSON as Go's encoder writes it. The order of keys is the caller's: that of Go's struct fields
    for objects, sorted for maps."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_GO_ESCAPES)


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Hash of a spec whose keys stand in the order of Go's type."""
    return hashlib.sha256(go_json(spec).encode()).hexdigest()


def data_hash(**identity: str) -> str:
    """Hash of what identifies weights and their place."""
    return f"{_DATA}{hashlib.sha256(go_json(dict(sorted(identity.items()))).encode()).hexdigest()}"
