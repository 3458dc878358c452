"""The images of this repository: what each is called, made from, and runs on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from noctaya_engine.errors import UnknownImage
from noctaya_engine.places import ROOT

REGISTRY: Final = "ghcr.io/noctaya"
VERSION: Final = str(
    tomllib.loads((ROOT / "services/gateway/pyproject.toml").read_text())["project"]["version"]
)
BUILD: Final = ("LICENSE", "constraints.txt", "services/image")
API: Final = (*BUILD, "libs/noctaya-api/pyproject.toml", "libs/noctaya-api/src")


@dataclass(frozen=True)
class Image:
    """One image.

    Attributes:
        name: what people call it.
        reference: its full name with tag.
        dockerfile: path in the repository.
        inputs: files and folders that the build gets, and nothing else.
        base: what it runs on (`noctaya_engine.base`); none for an image from scratch.
        parts: programs of `noctaya_parts` put beside the inputs as `parts/<name>`.
    """

    name: str
    reference: str
    dockerfile: str
    inputs: tuple[str, ...]
    base: str | None = "python"
    parts: tuple[str, ...] = ()


def _python(
    name: str, repository: str, folder: str, *, base: str = "python", shared: tuple[str, ...] = API
) -> Image:
    return Image(
        name=name,
        reference=f"{repository}:{VERSION}",
        dockerfile=f"{folder}/Dockerfile",
        inputs=(f"{folder}/Dockerfile", f"{folder}/pyproject.toml", f"{folder}/src", *shared),
        base=base,
    )


IMAGES: Final = {
    image.name: image
    for image in (
        _python("operator", f"{REGISTRY}/noctaya", "services/operator"),
        _python("gateway", f"{REGISTRY}/noctaya-gateway", "services/gateway"),
        _python("aggregate-scaler", f"{REGISTRY}/noctaya-aggregate-scaler", "services/aggregate-scaler"),
        _python("prewarm-agent", f"{REGISTRY}/noctaya-prewarm-agent", "services/prewarm-agent"),
        _python("model-stub", "noctaya/model-stub", "e2e/model_servers/stub", base="python-shell"),
        _python("model-hub", "noctaya/model-hub", "e2e/model_hub", shared=BUILD),
        _python(
            "llamacpp-server",
            "noctaya/llamacpp-server",
            "e2e/model_servers/llamacpp",
            base="python-shell",
            shared=BUILD,
        ),
        Image(
            name="oras",
            reference="ghcr.io/oras-project/oras:v1.3.0",
            dockerfile="e2e/images/oras/Dockerfile",
            inputs=("e2e/images/oras/Dockerfile",),
            base=None,
            parts=("oras",),
        ),
    )
}


def find(names: Iterable[str]) -> list[Image]:
    """The images of these names, all when there are none.

    Raises:
        UnknownImage: the message lists the names there are.
    """
    wanted = list(dict.fromkeys(names)) or list(IMAGES)
    for name in wanted:
        if name not in IMAGES:
            raise UnknownImage(f"there is no image {name!r}; there are {', '.join(IMAGES)}")
    return [IMAGES[name] for name in wanted]
