"""The ServiceMonitor of examples/observability finds the metrics of the operator as its chart installs it."""

from __future__ import annotations

import yaml
from noctaya_apiserver.noctaya import REPOSITORY
from noctaya_charts.helm import Helm

MONITORS = REPOSITORY / "examples" / "observability" / "servicemonitors.yaml"


def test_the_shipped_monitor_selects_the_operators_service_and_its_port_alone(helm: Helm) -> None:
    (monitor,) = [
        each
        for each in yaml.safe_load_all(MONITORS.read_text())
        if each["metadata"]["name"] == "noctaya-operator"
    ]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    services = [
        each for each in helm.template(REPOSITORY / "charts" / "operator") if each["kind"] == "Service"
    ]
    selected = [each for each in services if wanted <= each["metadata"]["labels"].items()]
    assert [each["metadata"]["name"] for each in selected] == ["noctaya-metrics"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in selected[0]["spec"]["ports"]}
