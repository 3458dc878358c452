"""Every example is taken by a real API server, strictly, and by `noctaya validate`; no file is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from noctaya_api.manifests import load_manifests
from noctaya_docs.pages import REPOSITORY, Fence, command_pages, fences
from noctaya_docs.stage import Shell, Stage
from noctaya_docs.ways import here

EXAMPLES = REPOSITORY / "examples"
KUSTOMIZED = sorted(
    file.parent.relative_to(REPOSITORY).as_posix()
    for file in EXAMPLES.rglob("kustomization.yaml")
    if file.parent != EXAMPLES
)
PLAIN = ("examples/quickstart",)
PROFILES = sorted(
    {
        file.parent.relative_to(REPOSITORY).as_posix()
        for file in EXAMPLES.rglob("*.yaml")
        if "kind: InferenceRuntime" in file.read_text(encoding="utf-8")
    }
)

WRITTEN_OUT = [
    fence
    for page in command_pages()
    for fence in fences(page)
    if fence.language == "yaml" and any(line.startswith("kind: ") for line in fence.lines)
]
"""Whole objects in pages; what is only a piece of one has no kind."""


def manifests(folder: Path) -> Iterator[Path]:
    """The files that make up the objects of a folder."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    for name in kustomization.get("resources", ()):
        target = (folder / name).resolve()
        yield from manifests(target) if target.is_dir() else (target,)
    for generated in kustomization.get("configMapGenerator", ()):
        yield from ((folder / name.rpartition("=")[2]).resolve() for name in generated.get("files", ()))


@pytest.mark.timeout(600)
def test_the_api_server_takes_every_example(shared_stage: Stage) -> None:
    faults = []
    for folder, flag in [*((each, "-k") for each in KUSTOMIZED), *((each, "-f") for each in PLAIN)]:
        ran = shared_stage.shell.run(f"kubectl apply --dry-run=server --validate=strict {flag} {folder}")
        lines = ran.output.splitlines()
        if (
            ran.code
            or ran.errors.strip()
            or not lines
            or any("(server dry run)" not in each for each in lines)
        ):
            faults.append((folder, ran))
    assert faults == []


@pytest.mark.parametrize("folder", PROFILES)
def test_noctaya_takes_every_profile(folder: str, tmp_path: Path) -> None:
    Shell(tmp_path).prove(f"noctaya validate {folder}", here(r"LLMService"))


@pytest.mark.parametrize("fence", WRITTEN_OUT, ids=lambda fence: f"{fence.page}:{fence.line}")
def test_noctaya_takes_a_service_that_a_page_writes_out(fence: Fence, tmp_path: Path) -> None:
    written = tmp_path / "written.yaml"
    written.write_text("\n".join(fence.lines) + "\n", encoding="utf-8")
    found = load_manifests([written])
    assert found.services or found.runtimes


def test_there_is_an_example_of_each_kind() -> None:
    kinds = {Path(each).parts[1] for each in (*KUSTOMIZED, *PLAIN)}
    assert {"nvidia", "ascend", "quickstart", "security", "observability"} <= kinds
    assert len(PROFILES) >= 6


def test_no_file_of_the_examples_is_forgotten() -> None:
    reached = {file for folder in KUSTOMIZED for file in manifests(REPOSITORY / folder)}
    reached |= {file for folder in PLAIN for file in (REPOSITORY / folder).glob("*.yaml")}
    there = {
        file
        for file in EXAMPLES.rglob("*")
        if file.suffix in {".yaml", ".yml", ".json"} and file.name != "kustomization.yaml"
    }
    assert there - reached == set()
