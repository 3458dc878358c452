"""Programs of other projects, pinned: `ensure("etcd", "helm")`, `python -m noctaya_parts build`."""

from __future__ import annotations

from .build import Report, ensure
from .catalogue import PARTS, UnknownPart
from .gotool import BuildError
from .source import module_folder

__all__ = ["PARTS", "BuildError", "Report", "UnknownPart", "ensure", "module_folder"]
