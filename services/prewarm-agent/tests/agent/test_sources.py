"""ModelScope: who gets credentials, and what a listing pins."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from modelscope_hub.types import FileInfo
from noctaya_model_hub import Hub, Served
from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.errors import BadSettings, IntegrityFault, NotAuthorised, NotFound, Refused
from noctaya_prewarm.listing import Listing, RemoteFile, check, digest_of, select
from noctaya_prewarm.sources import modelscope
from noctaya_prewarm.sources.source import open_source, parse_source

from .kit import FILES, REPOSITORY, assert_whole, fetch, marker_of, settings


def test_modelscope_arrives_with_its_folders_and_sha256(served: Served, hub: Hub, target: Path) -> None:
    run = fetch(served, target, source=f"modelscope://{REPOSITORY}")
    assert_whole(target, hub)
    assert all(file.sha256 for file in marker_of(target).files)
    assert run.revision.startswith("sha256:")


def test_m1_a_listing_that_the_server_cuts_short_is_completed_or_refused(
    served: Served, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelscope_hub._legacy_api.REPO_FILES_TRUNCATION_LIMIT", 100)
    hub.truncate_at = 100
    hub.create("org/many", {f"{n % 20}/{n}.txt": str(n) for n in range(200)})
    source = open_source(parse_source("modelscope://org/many", settings(served)), settings(served))
    assert len(source.list().files) == 200
    hub.create("org/flat", {f"{n}.txt": str(n) for n in range(101)})
    flat = open_source(parse_source("modelscope://org/flat", settings(served)), settings(served))
    with pytest.raises(IntegrityFault, match="does not list all files"):
        flat.list()


def test_m3_modelscopes_token_goes_to_the_hub_alone(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "MODELSCOPE_API_TOKEN").write_text("ms-1")
    hub.create("org/gated", FILES, gated=True, tokens=["ms-1"])
    fetch(served, target, source="modelscope://org/gated", secret_dir=tmp_path)
    assert_whole(target, hub, repository="org/gated")
    assert {seen.authorization for seen in hub.requests.of("ms-file")} == {"Bearer ms-1"}
    assert {seen.authorization for seen in hub.requests.of("cdn")} == {""}


def test_modelscopes_refusals_are_told_apart(served: Served, hub: Hub, target: Path) -> None:
    hub.create("org/gated", FILES, gated=True, tokens=["ms-1"])
    with pytest.raises(NotAuthorised, match="secretRef"):
        fetch(served, target, source="modelscope://org/gated")
    with pytest.raises(NotFound, match="org/nothing@master"):
        fetch(served, target, source="modelscope://org/nothing")


def test_a_file_listed_without_a_digest_is_held_to_its_size() -> None:
    entry = FileInfo(path="a/b.txt", size=3, blob_id="x1")
    assert modelscope._file(entry) == RemoteFile(path=PurePosixPath("a/b.txt"), size=3, pin="x1")


def remote(path: str, **values: Any) -> RemoteFile:
    return RemoteFile(path=PurePosixPath(path), **{"size": 1, **values})


def listing(*paths: str) -> Listing:
    return Listing(revision="r", files=tuple(remote(path) for path in paths))


@pytest.mark.parametrize(
    ("include", "exclude", "left"),
    [
        ((), (), ["a.json", "b/c.json", "b/d.bin"]),
        (("*.json",), (), ["a.json", "b/c.json"]),
        (("b/",), (), ["b/c.json", "b/d.bin"]),
        (("b/*",), ("*.bin",), ["b/c.json"]),
        ((), ("b/",), ["a.json"]),
        (("A.json", "a.json"), (), ["a.json"]),
        (("[ab].json",), (), ["a.json"]),
    ],
)
def test_m3_patterns_match_as_in_huggingface_hub(
    include: tuple[str, ...], exclude: tuple[str, ...], left: list[str]
) -> None:
    from huggingface_hub.utils._paths import filter_repo_objects

    paths = ["a.json", "b/c.json", "b/d.bin"]
    found = select(listing(*paths), include=include, exclude=exclude)
    assert [str(file.path) for file in found.files] == left
    theirs = filter_repo_objects(
        paths, allow_patterns=list(include) or None, ignore_patterns=list(exclude) or None
    )
    assert list(theirs) == left


def test_m4_files_that_cannot_lie_side_by_side_are_refused() -> None:
    for paths in (("a", "a"), ("a", "a/b")):
        with pytest.raises(Refused):
            check(listing(*paths))
    with pytest.raises(Refused, match="-1 bytes"):
        check(Listing(revision="r", files=(remote("a", size=-1),)))


def test_a_revision_made_of_a_listing_changes_with_anything_in_it() -> None:
    base = remote("a", size=1, digest=Digest(kind=Kind.MD5, value="00"), pin="p")
    others = [
        remote("b", size=1, digest=base.digest, pin="p"),
        remote("a", size=2, digest=base.digest, pin="p"),
        remote("a", size=1, digest=Digest(kind=Kind.MD5, value="01"), pin="p"),
        remote("a", size=1, digest=base.digest, pin="q"),
    ]
    revisions = {digest_of([file]) for file in (base, *others)}
    assert len(revisions) == 5
    assert digest_of([base, others[0]]) == digest_of([others[0], base])


def test_an_extra_that_is_not_installed_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "noctaya_prewarm.sources.modelscope", None)
    with pytest.raises(BadSettings, match=r"pip install 'noctaya-prewarm\[modelscope\]'"):
        open_source(parse_source("modelscope://a/b", settings()), settings())
