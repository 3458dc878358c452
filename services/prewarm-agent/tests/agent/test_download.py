"""A download ends with a whole, verified, marked model, or with none."""

import json
import os
import stat
from pathlib import Path

import pytest
from noctaya_model_hub import Effect, Hub, Match, Pattern, Served
from noctaya_prewarm.errors import BadSettings, NetworkFault, NotAuthorised, NotFound, Refused

from .kit import FILES, REPOSITORY, SOURCE, assert_whole, fetch, marker_of


def test_m1_a_model_arrives_whole_with_a_marker_of_what_was_verified(
    served: Served, hub: Hub, target: Path
) -> None:
    run = fetch(served, target)
    assert_whole(target, hub)
    marker = json.loads((target / ".noctaya-ready").read_text())
    assert marker["version"] == 1
    assert marker["source"] == SOURCE
    assert marker["revision"] == run.revision == hub.repositories[REPOSITORY].refs["main"]
    assert marker["target"] == str(target)
    assert marker["bytes"] == sum(file["size"] for file in marker["files"])
    kinds = {file["path"]: set(file) & {"sha256", "gitSha1"} for file in marker["files"]}
    assert kinds["model.safetensors"] == {"sha256"}
    assert kinds["config.json"] == {"gitSha1"}


def test_m1_a_second_run_asks_the_hub_nothing(served: Served, hub: Hub, target: Path) -> None:
    fetch(served, target)
    before = (target / "model.safetensors").stat()
    hub.requests.clear()
    run = fetch(served, target)
    assert hub.requests.seen == []
    assert run.progress.snapshot().bytesDone == run.progress.snapshot().bytesTotal > 0
    assert (target / "model.safetensors").stat() == before


def test_m1_the_marker_can_lie_elsewhere(served: Served, hub: Hub, target: Path, tmp_path: Path) -> None:
    marker = tmp_path / "markers" / "ready"
    fetch(served, target, marker=marker)
    assert json.loads(marker.read_text())["target"] == str(target)
    assert not (target / ".noctaya-ready").exists()


@pytest.mark.parametrize("damage", ["missing", "shorter", "other bytes, other time"])
def test_m1_a_damaged_model_is_repaired_and_only_the_damage_fetched(
    served: Served, hub: Hub, target: Path, damage: str
) -> None:
    fetch(served, target)
    victim = target / "model.safetensors"
    if damage == "missing":
        victim.unlink()
    elif damage == "shorter":
        os.truncate(victim, 1000)
    else:
        content = bytearray(victim.read_bytes())
        content[1000] ^= 1
        victim.write_bytes(content)
    hub.requests.clear()
    fetch(served, target)
    assert_whole(target, hub)
    assert {seen.path for seen in hub.requests.of("resolve")} == {"model.safetensors"}


def test_m1_a_marker_elsewhere_goes_before_the_repair_begins(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "ready"
    fetch(served, target, marker=marker)
    (target / "model.safetensors").unlink()
    hub.faults.add(Match(route="cdn"), Effect(status=500))
    with pytest.raises(NetworkFault):
        fetch(served, target, marker=marker, retry_limit=0.2)
    assert not marker.exists()
    hub.faults.clear()
    fetch(served, target, marker=marker)
    assert marker.exists()


def test_m1_a_moved_branch_is_what_the_marker_names(served: Served, hub: Hub, target: Path) -> None:
    old = hub.repositories[REPOSITORY].refs["main"]
    hub.repositories[REPOSITORY].commit({"config.json": "new"})
    fetch(served, target, source=f"{SOURCE}@{old}")
    assert marker_of(target).revision == old
    assert (target / "config.json").read_bytes() == FILES["config.json"]


def test_m1_another_source_in_the_same_place_replaces_it(served: Served, hub: Hub, target: Path) -> None:
    fetch(served, target)
    hub.create("org/other", {"config.json": "other", "weights.bin": Pattern(size=100_000)})
    fetch(served, target, source="hf://org/other")
    assert_whole(target, hub, repository="org/other")


def test_m1_a_directory_of_somebody_else_is_left_alone(served: Served, target: Path) -> None:
    target.mkdir()
    (target / "thesis.txt").write_text("mine")
    with pytest.raises(BadSettings, match="was not made by this agent"):
        fetch(served, target)
    assert [path.name for path in target.iterdir()] == ["thesis.txt"]


def test_m3_a_gated_model_is_fetched_with_the_token_and_only_the_hub_sees_it(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    hub.create("org/gated", FILES, gated=True, tokens=["hf_secret"])
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "token").write_text("hf_secret\n")
    fetch(served, target, source="hf://org/gated", secret_dir=secret)
    assert_whole(target, hub, repository="org/gated")
    assert {seen.authorization for seen in hub.requests.of("resolve")} == {"Bearer hf_secret"}
    assert {seen.authorization for seen in hub.requests.of("cdn")} == {""}


def test_m3_without_a_token_the_error_names_the_remedy(served: Served, hub: Hub, target: Path) -> None:
    hub.create("org/gated", FILES, gated=True, tokens=["hf_secret"])
    with pytest.raises(NotAuthorised, match="secretRef"):
        fetch(served, target, source="hf://org/gated")
    assert not target.exists()


def test_m3_a_token_that_changes_meanwhile_counts_at_once(
    served: Served, hub: Hub, target: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "token").write_text("old")
    hub.create("org/gated", FILES, gated=True, tokens=["old"])
    allowed = hub.repositories["org/gated"]

    def rotate() -> None:
        allowed.allowed = frozenset({"new"})
        hub.tokens.add("new")
        # Replaced as a whole, as the kubelet does: nobody sees an empty file.
        (tmp_path / "fresh").write_text("new")
        (tmp_path / "fresh").replace(secret / "token")

    hub.faults.add(Match(route="resolve", calls={1}), Effect(then=rotate))
    fetch(served, target, source="hf://org/gated", secret_dir=secret)
    assert_whole(target, hub, repository="org/gated")


@pytest.mark.parametrize("variable", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH"])
def test_m3_without_a_secret_the_hubs_own_variables_count(
    served: Served, hub: Hub, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    hub.create("org/gated", {"a": "a"}, gated=True, tokens=["hf_secret"])
    (tmp_path / "token").write_text("hf_secret\n")
    value = str(tmp_path / "token") if variable.endswith("PATH") else "hf_secret"
    monkeypatch.setenv(variable, value)
    fetch(served, target, source="hf://org/gated")
    assert (target / "a").read_text() == "a"


def test_an_unknown_repository_and_an_unknown_revision_are_told_apart_from_a_refusal(
    served: Served, target: Path
) -> None:
    with pytest.raises(NotAuthorised, match="unknown names"):
        fetch(served, target, source="hf://org/nothing")
    with pytest.raises(NotFound, match="revision"):
        fetch(served, target, source=f"{SOURCE}@nothing")


def test_m3_patterns_choose_the_files(served: Served, hub: Hub, target: Path) -> None:
    fetch(served, target, include=("*.json", "tokenizer/"), exclude=("*.md",))
    assert {file.path for file in marker_of(target).files} == {"config.json", "tokenizer/vocab.txt"}
    with pytest.raises(NotFound, match=r"\*\.gguf"):
        fetch(served, target.with_name("other"), include=("*.gguf",))


@pytest.mark.parametrize(
    "name", ["../escape", "/etc/passwd", "a/../../b", "a\x00b", ".noctaya-ready", "x" * 300]
)
def test_m4_a_listing_that_leaves_the_target_is_refused(
    served: Served, hub: Hub, target: Path, name: str
) -> None:
    hub.create("org/evil", {"config.json": "x", name: "evil"})
    with pytest.raises(Refused):
        fetch(served, target, source="hf://org/evil")
    assert not target.exists()


@pytest.mark.parametrize("where", ["config.json", "tokenizer"])
def test_m4_a_link_in_the_way_is_replaced_or_refused_never_followed(
    served: Served, hub: Hub, target: Path, tmp_path: Path, where: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config.json").write_text("precious")
    partial = target.with_name(f"{target.name}.partial")
    partial.mkdir()
    (partial / where).symlink_to(outside / "config.json" if where == "config.json" else outside)
    if where == "tokenizer":
        with pytest.raises(Refused, match="in the way"):
            fetch(served, target)
    else:
        fetch(served, target)
        assert_whole(target, hub)
    assert [path.name for path in outside.iterdir()] == ["config.json"]
    assert (outside / "config.json").read_text() == "precious"


def test_files_are_writable_for_the_group_so_that_another_uid_can_go_on(served: Served, target: Path) -> None:
    old = os.umask(0o002)
    try:
        fetch(served, target)
    finally:
        os.umask(old)
    for path in [target, *target.rglob("*")]:
        assert path.stat().st_mode & stat.S_IWGRP, path


def test_what_is_no_source_to_download_is_refused_by_name(served: Served, target: Path) -> None:
    with pytest.raises(BadSettings, match="mounted as it is"):
        fetch(served, target, source="pvc://claim/model", endpoint="")
