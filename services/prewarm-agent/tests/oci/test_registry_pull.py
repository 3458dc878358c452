"""From a registry to a model: registry-auth, the real oras and stage, as the Job runs them (M5)."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from noctaya_model_hub import Effect, Faults, Match
from noctaya_prewarm.errors import PrewarmError
from noctaya_prewarm.registry_auth import login
from noctaya_prewarm.run import Run
from noctaya_prewarm.stage import stage
from oci_artifacts import INDEX, TITLE, descriptor, manifest_of, sha256, titled, tree_of
from registries import PASSWORD, USER, LyingRegistry, basic, pull, push, real_registry, serve_beside

CONTENT = {"config.json": b"{}\n", "model.safetensors": os.urandom(2_000_000)}


class Job:
    """The three steps of a prewarm Job for an OCI source, with a staging folder and a cache of its own."""

    def __init__(self, folder: Path, new_run: Callable[[], Run]) -> None:
        self._folder, self._new_run = folder, new_run
        self.pulled = ""
        self.target = Path()

    def __call__(
        self, registry: str, digest: str, *, auths: dict[str, Any] | None = None, tag: str = ""
    ) -> Path:
        source = f"oci://{registry}/team/model" + (f":{tag}" if tag else f"@sha256:{digest}")
        config = None
        if auths is not None:
            secret = self._folder / "secret.json"
            secret.write_text(json.dumps({"auths": auths}))
            config = self._folder / "login" / "config.json"
            login(config=secret, source=source, output=config)
        layout = self._folder / "staging"
        done = pull(source.removeprefix("oci://"), layout, config=config)
        self.pulled = done.stderr
        target = f"{self._folder}/cache/oci/sha256-{{digest}}"
        self.target = Path(target.format(digest=digest))
        if done.returncode != 0:
            raise PrewarmError("the pull failed")
        stage(
            layout=layout,
            source=source,
            target=target,
            marker=f"{target}/.noctaya-ready",
            prune=False,
            run=self._new_run(),
        )
        return self.target


@pytest.fixture
def job(tmp_path: Path, new_run: Callable[[], Run]) -> Job:
    return Job(tmp_path, new_run)


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, str]]]:
    """An open and a private registry with one artifact each: host and digest."""
    folder = tmp_path_factory.mktemp("artifact")
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    (folder / "tok" / "deep").mkdir(parents=True)
    (folder / "tok" / "deep" / "vocab.txt").write_bytes(b"v" * 9000)
    names = [*CONTENT, "tok"]
    with (
        real_registry(tmp_path_factory.mktemp("open")) as opened,
        real_registry(tmp_path_factory.mktemp("private"), private=True) as private,
    ):
        yield {
            "open": (opened, push(opened, folder, names)),
            "private": (private, push(private, folder, names)),
        }


EXPECTED = CONTENT | {"tok/deep/vocab.txt": b"v" * 9000}


@pytest.mark.parametrize("tag", ["", "v1"])
def test_what_oras_pushed_is_staged(job: Job, registries: dict[str, tuple[str, str]], tag: str) -> None:
    assert tree_of(job(*registries["open"], tag=tag)) == EXPECTED


def test_a_second_job_after_a_restart(job: Job, registries: dict[str, tuple[str, str]]) -> None:
    assert job(*registries["open"]) == job(*registries["open"], tag="v1")


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("{}", {"auth": basic()}),
        ("{}", {"username": USER, "password": PASSWORD}),
        ("https://{}/v1/", {"auth": basic()}),
        ("http://{}", {"auth": basic()}),
        ("{}/team/model", {"auth": basic()}),
    ],
)
def test_m5_every_form_of_a_pull_secret_opens_a_private_registry(
    job: Job, registries: dict[str, tuple[str, str]], key: str, entry: dict[str, str]
) -> None:
    registry, digest = registries["private"]
    target = job(
        registry, digest, auths={"other.example": {"auth": basic("a", "b")}, key.format(registry): entry}
    )
    assert tree_of(target) == EXPECTED
    assert PASSWORD not in job.pulled


def test_m5_of_two_entries_the_fitting_one_is_used(job: Job, registries: dict[str, tuple[str, str]]) -> None:
    registry, digest = registries["private"]
    wrong, right = {"auth": basic("nobody", "wrong")}, {"auth": basic()}
    auths = {
        f"{registry}/other": wrong,
        registry: wrong,
        f"{registry}/team": right,
        f"https://{registry}": wrong,
    }
    assert tree_of(job(registry, digest, auths=auths)) == EXPECTED


@pytest.mark.parametrize("auths", [None, {"{}": {"auth": basic(USER, "wrong")}}])
def test_a_private_registry_stays_closed_without_the_password(
    job: Job, registries: dict[str, tuple[str, str]], auths: dict[str, Any] | None
) -> None:
    registry, digest = registries["private"]
    named = None if auths is None else {key.format(registry): entry for key, entry in auths.items()}
    with pytest.raises(PrewarmError, match="the pull failed"):
        job(registry, digest, auths=named)
    assert "registry credential" in job.pulled or "unauthorized" in job.pulled
    assert not job.target.exists()


MANIFEST = manifest_of([titled(content, title) for title, content in CONTENT.items()])
DIGEST = f"sha256:{sha256(MANIFEST)}"
WEIGHTS = f"sha256:{sha256(CONTENT['model.safetensors'])}"
HONEST = {DIGEST: MANIFEST, f"sha256:{sha256(b'{}')}": b"{}"} | {
    f"sha256:{sha256(content)}": content for content in CONTENT.values()
}


@pytest.mark.parametrize(
    ("given", "registry"),
    [
        ({"identitytoken": "refresh-me"}, LyingRegistry(HONEST, token="access", refresh="refresh-me")),
        ({"registrytoken": "access"}, LyingRegistry(HONEST, token="access")),
    ],
)
def test_m5_tokens_of_a_pull_secret_are_shown(
    job: Job, given: dict[str, str], registry: LyingRegistry
) -> None:
    with serve_beside(registry.answer) as host:
        assert tree_of(job(host, sha256(MANIFEST), auths={host: given})) == CONTENT


def lies() -> dict[str, tuple[LyingRegistry, str]]:
    """Registries that serve something else than they announce, and the digest that is asked for."""
    wrong = bytearray(CONTENT["model.safetensors"])
    wrong[1_000_000] ^= 1
    index = json.dumps(
        {"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor(MANIFEST)]},
    ).encode()
    other = manifest_of([titled(b"evil", "model.safetensors")])
    sha512 = hashlib.sha512(b"evil").hexdigest()
    stranger = manifest_of([{**titled(b"evil", "a"), "digest": f"sha512:{sha512}"}])
    dotted = manifest_of([titled(b"evil", "../../evil")])
    absolute = manifest_of([titled(b"evil", "/tmp/evil")])
    long = manifest_of([titled(b"evil", "x" * 300)])
    many = manifest_of([titled(b"evil", f"file-{number}") for number in range(10_000)])
    evil = {f"sha256:{sha256(b'evil')}": b"evil", f"sha512:{sha512}": b"evil"}

    def asked(content: bytes, *, media_type: str = "") -> tuple[LyingRegistry, str]:
        name = f"sha256:{sha256(content)}"
        types = {name: media_type} if media_type else {}
        return LyingRegistry(HONEST | evil | {name: content}, media_types=types), sha256(content)

    return {
        "wrong bytes": (LyingRegistry(HONEST | {WEIGHTS: bytes(wrong)}), sha256(MANIFEST)),
        "truncated": (LyingRegistry(HONEST | {WEIGHTS: bytes(wrong[:1_999_999])}), sha256(MANIFEST)),
        "longer": (LyingRegistry(HONEST | {WEIGHTS: bytes(wrong) + b"x"}), sha256(MANIFEST)),
        "another manifest": (LyingRegistry(HONEST | evil | {DIGEST: other}), sha256(MANIFEST)),
        "no layer": (
            LyingRegistry({key: value for key, value in HONEST.items() if key != WEIGHTS}),
            sha256(MANIFEST),
        ),
        "an index": asked(index, media_type=INDEX),
        "an index called a manifest": asked(index),
        "another algorithm": asked(stranger),
        "a dotted title": asked(dotted),
        "an absolute title": asked(absolute),
        "a name of 300 characters": asked(long),
        "10,000 files": asked(many),
    }


LIES = lies()


@pytest.mark.parametrize("lie", LIES)
def test_m5_no_lie_of_a_registry_becomes_a_model(job: Job, tmp_path: Path, lie: str) -> None:
    registry, digest = LIES[lie]
    with serve_beside(registry.answer) as host, pytest.raises(PrewarmError):
        job(host, digest)
    assert not job.target.exists()
    assert not list((tmp_path / "cache").rglob(".noctaya-ready*"))
    assert not list(tmp_path.rglob("evil"))
    assert not Path("/tmp/evil").exists()


def test_a_connection_that_breaks_is_told_and_the_next_job_ends_well(job: Job) -> None:
    faults = Faults()
    faults.add(Match(route="blobs", path=WEIGHTS, calls={1}), Effect(cut_after=500_000))
    with serve_beside(LyingRegistry(HONEST).answer, faults=faults) as host:
        try:
            target = job(host, sha256(MANIFEST))
        except PrewarmError:
            target = job(host, sha256(MANIFEST))
    assert tree_of(target) == CONTENT


def test_the_title_of_a_layer_decides_not_its_media_type(job: Job) -> None:
    layer = descriptor(b"evil", media_type="application/vnd.custom", **{TITLE: "a.bin"})
    content = manifest_of([layer])
    blobs = HONEST | {f"sha256:{sha256(content)}": content, f"sha256:{sha256(b'evil')}": b"evil"}
    with serve_beside(LyingRegistry(blobs).answer) as host:
        assert tree_of(job(host, sha256(content))) == {"a.bin": b"evil"}
