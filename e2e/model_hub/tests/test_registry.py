"""The registry, as far as a pull sees it; a real oras pulls from it on the cluster."""

import hashlib
import json

import httpx
import pytest
from noctaya_model_hub import Content, Effect, Hub, Match, Pattern

FILES: dict[str, Content | bytes | str] = {
    "config.json": b"{}",
    "model.safetensors": Pattern(size=1_500_000, seed=3),
}


async def test_a_pull_by_tag_and_by_digest(hub: Hub, http: httpx.AsyncClient) -> None:
    digest = hub.artifact("team/model", FILES, tag="v1")
    assert (await http.get("/v2/")).status_code == 200
    by_tag = await http.get("/v2/team/model/manifests/v1")
    assert by_tag.headers["docker-content-digest"] == digest
    assert f"sha256:{hashlib.sha256(by_tag.content).hexdigest()}" == digest
    assert (await http.get(f"/v2/team/model/manifests/{digest}")).content == by_tag.content
    document = json.loads(by_tag.content)
    assert [layer["annotations"]["org.opencontainers.image.title"] for layer in document["layers"]] == list(
        FILES
    )
    for described in [document["config"], *document["layers"]]:
        blob = await http.get(f"/v2/team/model/blobs/{described['digest']}")
        assert len(blob.content) == described["size"]
        assert f"sha256:{hashlib.sha256(blob.content).hexdigest()}" == described["digest"]


async def test_a_tag_moves_and_a_digest_stays(hub: Hub, http: httpx.AsyncClient) -> None:
    old = hub.artifact("team/model", {"a": "1"}, tag="v1")
    new = hub.artifact("team/model", {"a": "2"}, tag="v1")
    assert (await http.get("/v2/team/model/manifests/v1")).headers["docker-content-digest"] == new
    assert (await http.get(f"/v2/team/model/manifests/{old}")).status_code == 200


async def test_a_password_is_wanted_for_manifests_and_blobs(hub: Hub, http: httpx.AsyncClient) -> None:
    digest = hub.artifact("team/private", {"a": "1"}, users={"puller": "right"})
    for wanted in (f"manifests/{digest}", f"blobs/sha256:{hashlib.sha256(b'1').hexdigest()}"):
        path = f"/v2/team/private/{wanted}"
        refused = await http.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic")
        assert (await http.get(path, auth=("puller", "wrong"))).status_code == 401
        assert (await http.get(path, auth=("nobody", ""))).status_code == 401
        assert (await http.get(path, auth=("puller", "right"))).status_code == 200


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v2/none/manifests/v1", "NAME_UNKNOWN"),
        ("/v2/team/model/manifests/v9", "MANIFEST_UNKNOWN"),
        ("/v2/team/model/blobs/sha256:00", "BLOB_UNKNOWN"),
    ],
)
async def test_what_is_missing(hub: Hub, http: httpx.AsyncClient, path: str, code: str) -> None:
    hub.artifact("team/model", {"a": "1"}, tag="v1")
    reply = await http.get(path)
    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, code)


async def test_a_blob_may_come_damaged(hub: Hub, http: httpx.AsyncClient) -> None:
    hub.artifact("team/model", {"a": b"abc"}, tag="v1")
    hub.faults.add(Match(route="oci-blob"), Effect(flip_at=1))
    digest = hashlib.sha256(b"abc").hexdigest()
    assert (await http.get(f"/v2/team/model/blobs/sha256:{digest}")).content == b"a\x9dc"


async def test_an_artifact_is_pushed_over_http(hub: Hub, http: httpx.AsyncClient) -> None:
    body = {"files": {"a": "1"}, "tag": "v2", "users": {"puller": "right"}}
    told = (await http.put("/_hub/artifacts/team/model", json=body)).json()
    assert hub.artifacts["team/model"].tags == {"v2": told["digest"]}
    assert hub.artifacts["team/model"].users == {"puller": "right"}
