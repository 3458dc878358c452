"""What an object that is created once was made for, as a hash in its annotation `create-once-hash`.

* A claim has the SHA-256 of its spec as Go writes JSON, which is what the v0.4 alpha stored too.
* A Job has `data-` and the SHA-256 of what identifies the weights and their place. Images, Secrets and
  placement are not part of it: they say how the weights come, not which. A Job of the alpha carries the hash
  of its whole template, which nobody else can compute; it is told apart by the missing `data-`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

_GO_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
DATA_PREFIX: Final = "data-"


def go_json(value: Any) -> str:
    """Compact JSON as Go's encoder writes it. The order of keys is the caller's: that of Go's struct fields
    for objects, sorted for maps."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_GO_ESCAPES)


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Hash of a spec whose keys stand in the order of Go's type."""
    return _sha256(go_json(spec))


def data_hash(**identity: str) -> str:
    """Hash of what identifies weights and their place."""
    return f"{DATA_PREFIX}{_sha256(go_json(dict(sorted(identity.items()))))}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
