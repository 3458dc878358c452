"""What a user reads after `helm install`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from noctaya_apiserver import ApiClient, ControlPlane
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm
from noctaya_charts.matrix import MATRIX

OPERATOR = MATRIX["operator"]
GATEWAY = MATRIX["gateway"]


@pytest.mark.parametrize(
    ("chart", "values", "told", "untold"),
    [
        (
            "operator",
            OPERATOR["defaults"],
            ["2 operators, one of which works", "1 gateway for each", "all namespaces", "leaves the CRDs"],
            ["KEDA is not here"],
        ),
        ("operator", OPERATOR["one"], ["1 operator,"], ["one of which works"]),
        (
            "operator",
            OPERATOR["restricted"],
            ["the namespaces default, kube-public", "The CRDs are not part of this release"],
            ["leaves the CRDs"],
        ),
        (
            "gateway",
            GATEWAY["one"],
            ["http://trial.default.svc/v1", "spec.replicas", "Everybody in the cluster may use it"],
            [],
        ),
        ("gateway", GATEWAY["everything"], ["http://qwen.default.svc:8080/v1"], ["Everybody"]),
        ("gateway", GATEWAY["reporting elsewhere"], ["trial-gateway"], ["KEDA now owns"]),
        (
            "aggregate-scaler",
            MATRIX["aggregate-scaler"]["usual"],
            ["http://trial-scaler.default.svc:9091/v1/demand", "demandAuth.existingSecret=trial-demand-auth"],
            [],
        ),
        (
            "prewarm-agent",
            MATRIX["prewarm-agent"]["hub"],
            ["hf://Qwen/Qwen3-8B@main goes onto the claim models, into Qwen3-8B", "pvc://models/Qwen3-8B"],
            [],
        ),
    ],
)
def test_notes_say_what_is_there_and_what_comes_next(
    cluster: Helm, api: ApiClient, chart: str, values: dict[str, Any], told: list[str], untold: list[str]
) -> None:
    said = cluster.run("install", "trial", CHARTS / chart, "--dry-run=server", values=values)
    notes = said.partition("NOTES:")[2]
    for words in told:
        assert words in notes
    for words in untold:
        assert words not in notes


def test_notes_say_when_keda_is_missing(helm: Helm, tmp_path: Path) -> None:
    with ControlPlane(tmp_path, controllers=()) as bare:
        said = helm.at(bare.kubeconfig()).run("install", "trial", CHARTS / "operator", "--dry-run=server")
    assert "KEDA is not here yet" in said
    assert "helm install keda keda --repo https://kedacore.github.io/charts" in said
