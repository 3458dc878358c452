"""A private container engine and the images of this repository.

`images.ensure("gateway")["gateway"].tar` is an image as a file; `Engine.running()` an engine to run it on.
"""

from __future__ import annotations

from noctaya_engine import images
from noctaya_engine.engine import Engine
from noctaya_engine.errors import BuildFailed, EngineError, EngineUnavailable, UnknownImage
from noctaya_engine.images import Built

__all__ = ["BuildFailed", "Built", "Engine", "EngineError", "EngineUnavailable", "UnknownImage", "images"]
