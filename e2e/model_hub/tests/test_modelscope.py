"""The ModelScope dialect, judged by its own hub client."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from modelscope_hub import HubApi
from modelscope_hub.errors import FileDownloadError, NotExistError
from noctaya_model_hub import Effect, Hub, Match, Served, sha256


def api(served: Served, token: str | None = None) -> HubApi:
    return HubApi(endpoint=served.url, token=token)


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MODELSCOPE_CACHE", str(tmp_path / "cache"))


async def test_the_real_client_downloads_a_snapshot(served: Served, hub: Hub, tmp_path: Path) -> None:
    call = partial(api(served).download_repo, "org/model", repo_type="model", local_dir=str(tmp_path / "out"))
    target = Path(await asyncio.to_thread(call))
    repository = hub.repositories["org/model"]
    for path, content in repository.commits[repository.refs["master"]].files.items():
        assert (target / path).read_bytes() == b"".join(content.pieces(0, content.size))
    assert {seen.path for seen in hub.requests.of("cdn")} == {"model.safetensors"}


async def test_a_listing_tells_sizes_hashes_and_the_commit(hub: Hub, http: httpx.AsyncClient) -> None:
    reply = await http.get("/api/v1/models/org/model/repo/files?Revision=master&Recursive=True")
    body: dict[str, Any] = reply.json()
    assert body["Success"] is True
    repository = hub.repositories["org/model"]
    files = {one["Path"]: one for one in body["Data"]["Files"]}
    assert set(files) == {"config.json", "empty.txt", "model.safetensors", "tokenizer", "tokenizer/vocab.txt"}
    assert files["tokenizer"]["Type"] == "tree"
    for path, content in repository.commits[repository.refs["main"]].files.items():
        assert files[path]["Size"] == content.size
        assert files[path]["Sha256"] == sha256(content)
        assert files[path]["Revision"] == repository.refs["main"]


async def test_a_listing_silently_ends_at_its_limit(hub: Hub, http: httpx.AsyncClient) -> None:
    hub.truncate_at = 3
    hub.create("org/many", {f"{number}.txt": "x" for number in range(9)})
    reply = await http.get("/api/v1/models/org/many/repo/files?Recursive=True")
    assert len(reply.json()["Data"]["Files"]) == 3


async def test_a_folder_is_listed_by_itself(http: httpx.AsyncClient) -> None:
    reply = await http.get("/api/v1/models/org/model/repo/files?Recursive=False&Root=tokenizer")
    assert [one["Path"] for one in reply.json()["Data"]["Files"]] == ["tokenizer/vocab.txt"]
    flat = await http.get("/api/v1/models/org/model/repo/files?Recursive=False")
    assert {one["Path"] for one in flat.json()["Data"]["Files"]} == {
        "config.json",
        "empty.txt",
        "model.safetensors",
        "tokenizer",
    }


async def test_branches_and_tags(served: Served, hub: Hub) -> None:
    repository = hub.repositories["org/model"]
    repository.tag("v1.0", repository.refs["main"])
    found = await asyncio.to_thread(partial(api(served).list_repo_revisions, "org/model", repo_type="model"))
    assert "v1.0" in str(found)
    assert "master" in str(found)


async def test_a_commit_hash_is_a_revision(hub: Hub, http: httpx.AsyncClient) -> None:
    repository = hub.repositories["org/model"]
    old = repository.refs["main"]
    repository.commit({"config.json": "new"})
    reply = await http.get(f"/api/v1/models/org/model/repo?Revision={old}&FilePath=config.json")
    assert reply.text == '{"model_type": "test"}\n'
    assert reply.headers["x-linked-etag"] == f'"{sha256(repository.commits[old].files["config.json"])}"'


async def test_a_token_comes_as_bearer_or_as_cookie(hub: Hub, http: httpx.AsyncClient) -> None:
    hub.create("org/gated", {"a.txt": "secret"}, gated=True, tokens=["good"])
    url = "/api/v1/models/org/gated/repo?Revision=master&FilePath=a.txt"
    assert (await http.get(url)).status_code == 403
    assert (await http.get(url, headers={"Authorization": "Bearer bad"})).status_code == 401
    assert (await http.get(url, headers={"Authorization": "Bearer good"})).text == "secret"
    assert (await http.get(url, headers={"Cookie": "a=b; m_session_id=good"})).text == "secret"


async def test_what_is_missing_is_not_found(served: Served, hub: Hub, tmp_path: Path) -> None:
    hub.create("org/private", {"a.txt": "b"}, private=True)
    for name, revision in (("org/none", "master"), ("org/private", "master"), ("org/model", "v9")):
        call = partial(
            api(served).download_repo,
            name,
            repo_type="model",
            revision=revision,
            local_dir=str(tmp_path / "out"),
        )
        with pytest.raises(NotExistError):
            await asyncio.to_thread(call)


async def test_the_real_client_notices_a_wrong_byte(served: Served, hub: Hub, tmp_path: Path) -> None:
    hub.faults.add(Match(route="cdn"), Effect(flip_at=5))
    call = partial(api(served).download_repo, "org/model", repo_type="model", local_dir=str(tmp_path / "out"))
    with pytest.raises(FileDownloadError):
        await asyncio.to_thread(call)
