"""Versions are said once: lock files and documentation follow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from noctaya_parts.catalogue import GROUPS, PARTS, Group, UnknownPart, wanted
from noctaya_parts.lock import lock_folder

README = Path(__file__).parents[1] / "README.md"
FOREIGN = [group for group in GROUPS if not group.local]


@pytest.mark.parametrize("group", FOREIGN, ids=lambda group: group.name)
def test_the_lock_files_hold_the_pinned_versions_and_their_hashes(group: Group) -> None:
    go_mod = (lock_folder(group) / "go.mod").read_text()
    go_sum = (lock_folder(group) / "go.sum").read_text()
    for module in group.modules:
        assert re.search(rf"\b{re.escape(module.path)} v{re.escape(module.version)}$", go_mod, re.MULTILINE)
        assert re.search(rf"^{re.escape(module.path)} v{re.escape(module.version)} h1:", go_sum, re.MULTILINE)


def test_every_replacement_is_a_published_module() -> None:
    for group in FOREIGN:
        go_mod = (lock_folder(group) / "go.mod").read_text()
        assert not re.search(r"=>\s*\.", go_mod), group.name


def test_the_readme_names_every_part_with_its_version() -> None:
    rows = re.findall(r"^\| (.+?) \| `(\S+) v(\S+)` \|", README.read_text(), re.MULTILINE)
    told = {
        (name, module, version)
        for names, module, version in rows
        for name in names.replace("`", "").split(", ")
    }
    pinned = set()
    for group in FOREIGN:
        for part in group.parts:
            (module,) = (module for module in group.modules if part.package.startswith(module.path))
            pinned.add((part.name, module.path, module.version))
    assert told == pinned


def test_kubernetes_knows_its_version() -> None:
    (group,) = (group for group in GROUPS if group.name == "kubernetes")
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in group.ldflags
    assert "version.gitMinor=34" in group.ldflags


def test_the_key_of_the_cache_changes_with_every_version() -> None:
    for group in GROUPS:
        for module in group.modules:
            assert f"{module.name}-{module.version}" in group.key


def test_parts_are_chosen_by_name_each_once() -> None:
    assert len(set(PARTS)) == len(PARTS)
    chosen = {group.name: [part.name for part in parts] for group, parts in wanted(["helm", "etcd", "helm"])}
    assert chosen == {"kubernetes": ["etcd"], "helm": ["helm"]}
    with pytest.raises(UnknownPart, match=r"no part hlem; there are etcd, kube-apiserver"):
        wanted(["hlem"])


def test_helm_renders_for_the_kubernetes_of_its_client_libraries() -> None:
    (helm,) = (group for group in GROUPS if group.name == "helm")
    found = re.search(r"k8s\.io/client-go v0\.(\d+)\.", (lock_folder(helm) / "go.mod").read_text())
    assert found is not None
    assert f"helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={found[1]}" in helm.ldflags
    assert f"helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor={found[1]}" in helm.ldflags
