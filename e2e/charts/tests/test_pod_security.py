"""O10: every Pod of every chart, in all its shapes, before the real admission of Pod Security."""

from __future__ import annotations

import pytest
from noctaya_apiserver import ApiClient
from noctaya_apiserver.pod_security import PodSecurity, templates
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm
from noctaya_charts.matrix import MATRIX, cases


@pytest.fixture(scope="module")
def admission(api: ApiClient) -> PodSecurity:
    return PodSecurity(api, "charts")


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: "-".join(case).replace(" ", "-"))
def test_o10_pods_of_the_charts_are_let_in_where_pods_are_restricted(
    helm: Helm, admission: PodSecurity, case: tuple[str, str]
) -> None:
    chart, shape = case
    found = {
        name: admission.level(template)
        for name, template in templates(helm.template(CHARTS / chart, MATRIX[chart][shape]))
    }
    assert found
    assert set(found.values()) == {"restricted"}, found
