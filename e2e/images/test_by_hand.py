"""`docker build -f services/gateway/Dockerfile .` as the READMEs have it, through .dockerignore."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_engine import Engine
from noctaya_engine.base import BUILD, ensure_bases
from noctaya_engine.catalog import IMAGES
from noctaya_engine.package_index import machine_settings
from noctaya_engine.places import ROOT

pytestmark = pytest.mark.private_engine


@pytest.mark.parametrize("name", ["gateway", "llamacpp-server"])
def test_a_build_by_hand_from_the_root_of_the_repository_works(
    name: str, bare_engine: Engine, tmp_path: Path
) -> None:
    image, bases = IMAGES[name], ensure_bases()
    assert image.base is not None
    arguments: list[str | Path] = ["--network=host", f"--file={ROOT / image.dockerfile}"]
    for variable, base in (("PYTHON_IMAGE", bases[image.base]), ("BUILD_IMAGE", bases[BUILD])):
        bare_engine.import_root(base.tar, base.reference)
        arguments.append(f"--build-arg={variable}={base.reference}")
    settings = machine_settings()
    arguments += [f"--build-arg={variable}={value}" for variable, value in settings.build_args.items()]
    for identity, content in settings.secrets.items():
        (tmp_path / identity).write_bytes(content)
        arguments.append(f"--secret=id={identity},src={tmp_path / identity}")
    made = bare_engine.docker("build", "--quiet", *arguments, ROOT)
    assert bare_engine.docker("inspect", "--format={{.Config.User}}", made) == "65532:65532"
    bare_engine.docker("image", "rm", made)
