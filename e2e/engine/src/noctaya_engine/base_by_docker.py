"""The base images by an engine that reaches an image registry: a Dockerfile instead of debootstrap."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from noctaya_engine.base import BUILD, INCLUDED, PYTHON_VERSION, RECIPES, SUITE, key
from noctaya_engine.context import collect, write_tar
from noctaya_engine.engine import Engine
from noctaya_engine.places import ROOT

DOCKERFILE: Final = "e2e/images/base/Dockerfile"
SOURCES: Final = "e2e/engine/src/noctaya_engine"
DEBIAN: Final = "debian:bookworm-slim"


def references() -> dict[str, str]:
    """What each base image is called; the tag changes with whatever shapes them."""
    return {name: f"noctaya/{name}:{PYTHON_VERSION}-{SUITE}-{key()}" for name in (BUILD, *RECIPES)}


def build_bases(engine: Engine, *, debian: str = DEBIAN) -> None:
    """Build those that the engine does not have.

    Raises:
        BuildFailed: no registry or no Debian mirror can be reached.
    """
    with tempfile.TemporaryDirectory(prefix="noctaya-base-") as work:
        context = Path(work) / "context.tar"
        write_tar(collect(ROOT, (DOCKERFILE, f"{SOURCES}/debian.py", f"{SOURCES}/distill.py"), {}), context)
        for name, reference in references().items():
            if not engine.has(reference):
                engine.build_context(
                    context,
                    dockerfile=DOCKERFILE,
                    reference=reference,
                    target=name,
                    build_args={"DEBIAN_IMAGE": debian, "INCLUDED": " ".join(INCLUDED)},
                    secrets={},
                )
