"""go.mod of the wrapper modules."""

from __future__ import annotations

import pytest
from noctaya_parts import BuildError
from noctaya_parts.catalogue import GROUPS, Module
from noctaya_parts.wrapper import replacements, tools_file, wrapper_module

KUBERNETES_GO_MOD = """
module k8s.io/kubernetes

go 1.24.0

require (
\tk8s.io/api v0.0.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl // a comment
\texample.com/other => example.com/fork v1.0.0
\texample.com/some v1.2.3 => example.com/some v1.2.4
)

replace k8s.io/alone => ./staging/src/k8s.io/alone
"""
ETCD_GO_MOD = """
module go.etcd.io/etcd/server/v3

go 1.24

require go.etcd.io/etcd/api/v3 v3.6.4

replace (
\tgo.etcd.io/etcd => ./FORBIDDEN_DEPENDENCY
\tgo.etcd.io/etcd/api/v3 => ../api
)
"""
(GROUP,) = (group for group in GROUPS if group.name == "kubernetes")
KUBERNETES, ETCD = GROUP.modules


def test_staged_modules_become_published_ones_and_other_replacements_stay() -> None:
    assert replacements(KUBERNETES, KUBERNETES_GO_MOD) == [
        "replace k8s.io/api => k8s.io/api v0.34.4",
        "replace k8s.io/kubectl => k8s.io/kubectl v0.34.4",
        "replace example.com/other => example.com/fork v1.0.0",
        "replace example.com/some v1.2.3 => example.com/some v1.2.4",
        "replace k8s.io/alone => k8s.io/alone v0.34.4",
    ]


def test_folders_for_development_are_left_out() -> None:
    assert replacements(ETCD, ETCD_GO_MOD) == []


def test_the_wrapper_requires_every_module_and_the_newest_go_of_them() -> None:
    lines = wrapper_module(GROUP, {KUBERNETES: KUBERNETES_GO_MOD, ETCD: ETCD_GO_MOD}).splitlines()
    assert lines[:4] == [
        "module noctaya.io/parts/kubernetes",
        "go 1.24.0",
        "require k8s.io/kubernetes v1.34.4",
        "require go.etcd.io/etcd/server/v3 v3.6.4",
    ]
    assert "replace k8s.io/alone => k8s.io/alone v0.34.4" in lines


def test_a_go_mod_of_kubernetes_without_staged_modules_is_an_error() -> None:
    with pytest.raises(BuildError, match="replaces nothing"):
        replacements(KUBERNETES, "module k8s.io/kubernetes\n\ngo 1.24\n")


def test_a_module_that_exists_only_in_its_repository_is_an_error() -> None:
    go_mod = "go 1.24\nrequire example.com/lib v0.0.0\nreplace example.com/lib => ../lib\n"
    with pytest.raises(BuildError, match=r"example\.com/app@v1\.0\.0 replaces example\.com/lib by \.\./lib"):
        replacements(Module("app", "example.com/app", "1.0.0"), go_mod)


def test_tidy_is_told_of_every_program() -> None:
    text = tools_file(GROUP)
    assert all(f'\t_ "{part.package}"\n' in text for part in GROUP.parts)
