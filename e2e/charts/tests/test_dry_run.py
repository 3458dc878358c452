"""Every shape of every chart is taken by a real API server, with nothing unknown in it."""

from __future__ import annotations

from typing import Final

import pytest
from noctaya_apiserver import ApiClient
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm
from noctaya_charts.matrix import MATRIX, cases

NAMESPACE: Final = "dry-run"


@pytest.fixture(scope="module")
def namespace(api: ApiClient) -> str:
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return NAMESPACE


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: "-".join(case).replace(" ", "-"))
def test_the_api_server_takes_every_object(
    cluster: Helm, api: ApiClient, namespace: str, case: tuple[str, str]
) -> None:
    chart, shape = case
    values = MATRIX[chart][shape]
    told = cluster.run(
        "install", "trial", CHARTS / chart, "--namespace", namespace, "--dry-run=server", values=values
    )
    assert "NOTES:" in told
    for each in cluster.template(CHARTS / chart, values, release="trial", namespace=namespace):
        created = api.create(each, dryRun="All", fieldValidation="Strict")
        assert created["metadata"]["uid"]
