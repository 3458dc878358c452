from pathlib import Path

import pytest
from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.lease import hold
from noctaya_prewarm.prune import is_model_name, prune
from noctaya_prewarm.run import Run

from .kit import settings

OTHERS = ["models/hf-0000000000000001", "models/s3-0000000000000002.partial", f"oci/sha256-{'a' * 64}"]
KEPT = [
    "models/notes",
    "models/hf-short",
    "models/hf-0000000000000001x",
    "hub/models--org--x",
    "oci/sha256-ab",
]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    for name in (*OTHERS, *KEPT, "models/hf-00000000000000ff"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / ".noctaya-ready").write_text("")
        (folder / "weights").write_text("x")
    return tmp_path


def left(cache: Path) -> set[str]:
    return {str(path.relative_to(cache)) for path in cache.glob("*/*")}


def test_every_other_model_goes_and_nothing_else(cache: Path) -> None:
    prune(cache / "models/hf-00000000000000ff")
    assert left(cache) == {*KEPT, "models/hf-00000000000000ff"}


def test_what_an_agent_works_on_stays(cache: Path) -> None:
    with hold(Run(settings()), cache / OTHERS[0]):
        prune(cache / "models/hf-00000000000000ff")
        assert (cache / OTHERS[0] / "weights").exists()


def test_a_link_is_never_followed_nor_removed(cache: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "weights").write_text("x")
    link = cache / "models/hf-0000000000000009"
    link.symlink_to(elsewhere)
    prune(cache / "models/hf-00000000000000ff")
    assert link.is_symlink()
    assert (elsewhere / "weights").exists()


def test_a_target_outside_the_layout_prunes_nothing(cache: Path) -> None:
    before = left(cache)
    for target in (cache / "models/mine", cache / "hub/hf-00000000000000ff"):
        with pytest.raises(BadSettings, match="--prune"):
            prune(target)
    assert left(cache) == before


def test_only_agents_give_such_names() -> None:
    assert is_model_name("hf-0123456789abcdef")
    assert not is_model_name("hf-0123456789abcdef.partial")
    assert not is_model_name("weights")
