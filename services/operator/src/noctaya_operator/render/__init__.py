"""From a plan to complete Kubernetes objects: pure, deterministic, without owner references.

`render_all` gives every object in apply order, with how it is written and which step reason a failure has.
"""

from __future__ import annotations

from noctaya_operator.render.order import Rendered, WriteMode, render_all

__all__ = ["Rendered", "WriteMode", "render_all"]
