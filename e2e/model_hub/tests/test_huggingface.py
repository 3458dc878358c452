"""The Hugging Face dialect, judged by huggingface_hub itself where it has an opinion."""

import asyncio
from functools import partial
from pathlib import Path

import httpx
import pytest
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from noctaya_model_hub import Hub, Pattern, Served, git_sha1, sha256


def content_of(hub: Hub, path: str, name: str = "org/model") -> bytes:
    repository = hub.repositories[name]
    content = repository.commits[repository.refs["main"]].files[path]
    return b"".join(content.pieces(0, content.size))


async def download(served: Served, target: Path, name: str = "org/model", **options: object) -> Path:
    call = partial(snapshot_download, name, endpoint=served.url, local_dir=target, **options)
    return Path(await asyncio.to_thread(call))


@pytest.mark.parametrize("small_redirects", [True, False])
async def test_the_real_client_downloads_a_snapshot(
    served: Served, hub: Hub, tmp_path: Path, small_redirects: bool
) -> None:
    hub.small_redirects = small_redirects
    target = await download(served, tmp_path / "out", token=False)
    for path in ("config.json", "tokenizer/vocab.txt", "model.safetensors", "empty.txt"):
        assert (target / path).read_bytes() == content_of(hub, path)
    assert {seen.path for seen in hub.requests.of("cdn")} == {"model.safetensors"}


async def test_the_real_client_resolves_and_lists_with_sizes_and_hashes(served: Served, hub: Hub) -> None:
    api = HfApi(endpoint=served.url, token=False)
    repository = hub.repositories["org/model"]
    info = await asyncio.to_thread(partial(api.model_info, "org/model", files_metadata=True))
    assert info.sha == repository.refs["main"]
    assert info.siblings is not None
    by_name = {one.rfilename: one for one in info.siblings}
    weights = repository.commits[info.sha].files["model.safetensors"]
    assert by_name["model.safetensors"].size == weights.size
    assert by_name["model.safetensors"].lfs is not None
    assert by_name["model.safetensors"].lfs.sha256 == sha256(weights)
    config = repository.commits[info.sha].files["config.json"]
    assert by_name["config.json"].blob_id == git_sha1(config)


async def test_a_tree_comes_in_pages(served: Served, hub: Hub) -> None:
    hub.page_size = 2
    hub.create("org/many", {f"dir/{number}.txt": str(number) for number in range(7)})
    api = HfApi(endpoint=served.url, token=False)
    entries = await asyncio.to_thread(lambda: list(api.list_repo_tree("org/many", recursive=True)))
    assert sorted(one.path for one in entries) == ["dir", *(f"dir/{number}.txt" for number in range(7))]
    assert len(hub.requests.of("tree")) == 4


async def test_a_commit_stays_when_the_branch_moves(served: Served, hub: Hub, tmp_path: Path) -> None:
    repository = hub.repositories["org/model"]
    old = repository.refs["main"]
    repository.commit({"config.json": "new"})
    assert repository.refs["main"] != old
    target = await download(served, tmp_path / "old", revision=old, token=False)
    assert (target / "config.json").read_bytes() == b'{"model_type": "test"}\n'
    target = await download(served, tmp_path / "new", token=False)
    assert (target / "config.json").read_bytes() == b"new"


async def test_a_branch_with_a_slash_is_one_part_of_the_path(served: Served, hub: Hub) -> None:
    repository = hub.repositories["org/model"]
    made = repository.commit({"a.txt": "pr"}, branch="refs/pr/1")
    api = HfApi(endpoint=served.url, token=False)
    info = await asyncio.to_thread(partial(api.model_info, "org/model", revision="refs/pr/1"))
    assert info.sha == made.sha


async def test_a_gated_repository_lists_for_all_and_serves_the_allowed(
    served: Served, hub: Hub, tmp_path: Path
) -> None:
    hub.create("org/gated", {"config.json": "{}"}, gated=True, tokens=["good"])
    hub.tokens.add("other")
    api = HfApi(endpoint=served.url, token=False)
    assert (await asyncio.to_thread(api.model_info, "org/gated")).gated == "auto"
    for number, token in enumerate([False, "other"]):
        with pytest.raises(GatedRepoError):
            await download(served, tmp_path / str(number), "org/gated", token=token)
    with pytest.raises(HfHubHTTPError, match="401"):
        await download(served, tmp_path / "bad", "org/gated", token="unknown")
    target = await download(served, tmp_path / "good", "org/gated", token="good")
    assert (target / "config.json").read_text() == "{}"


@pytest.mark.parametrize("token", [False, "good"])
async def test_what_is_missing_or_private_is_not_found(served: Served, hub: Hub, token: str | bool) -> None:
    hub.tokens.add("good")
    hub.create("org/private", {"a": "b"}, private=True)
    api = HfApi(endpoint=served.url, token=token)
    for name in ("org/missing", "org/private", "alone"):
        with pytest.raises(RepositoryNotFoundError):
            await asyncio.to_thread(api.model_info, name)


async def test_unknown_revisions_and_files_are_named(served: Served) -> None:
    api = HfApi(endpoint=served.url, token=False)
    with pytest.raises(RevisionNotFoundError):
        await asyncio.to_thread(partial(api.model_info, "org/model", revision="v9"))
    with pytest.raises(EntryNotFoundError):
        await asyncio.to_thread(partial(api.hf_hub_download, "org/model", "nothing.txt"))


async def test_a_large_file_moves_to_another_host_which_takes_no_token(
    served: Served, hub: Hub, http: httpx.AsyncClient
) -> None:
    hub.tokens.add("good")
    reply = await http.get(
        "/org/model/resolve/main/model.safetensors", headers={"Authorization": "Bearer good"}
    )
    assert reply.status_code == 302
    location = httpx.URL(reply.headers["location"])
    assert location.host != httpx.URL(served.url).host
    assert reply.headers["x-linked-size"] == str(Pattern(size=3_000_007).size)
    leaked = await http.get(location, headers={"Authorization": "Bearer good"})
    assert leaked.status_code == 400
    unsigned = await http.get(location.copy_with(query=None))
    assert unsigned.status_code == 403
    part = await http.get(location, headers={"Range": "bytes=1048570-1048585"})
    assert part.status_code == 206
    assert part.content == content_of(hub, "model.safetensors")[1048570:1048586]
    assert part.headers["content-range"] == "bytes 1048570-1048585/3000007"


@pytest.mark.parametrize(
    ("wanted", "status", "span"),
    [
        ("bytes=0-", 206, (0, 23)),
        ("bytes=20-999", 206, (20, 23)),
        ("bytes=-3", 206, (20, 23)),
        ("bytes=23-", 416, (0, 0)),
        ("bytes=9-3", 416, (0, 0)),
        ("bytes=-", 200, (0, 23)),
        ("lines=1-2", 200, (0, 23)),
    ],
)
async def test_ranges(
    served: Served, hub: Hub, http: httpx.AsyncClient, wanted: str, status: int, span: tuple[int, int]
) -> None:
    hub.small_redirects = False
    reply = await http.get("/org/model/resolve/main/config.json", headers={"Range": wanted})
    assert reply.status_code == status
    assert reply.content == content_of(hub, "config.json")[slice(*span)]


async def test_a_range_of_another_version_is_the_whole_file(hub: Hub, http: httpx.AsyncClient) -> None:
    hub.small_redirects = False
    headers = {"Range": "bytes=5-", "If-Range": '"of-another-version"'}
    reply = await http.get("/org/model/resolve/main/config.json", headers=headers)
    assert reply.status_code == 200
    assert reply.content == content_of(hub, "config.json")
