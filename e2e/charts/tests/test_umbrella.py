"""The charts below one parent: their templates do not meet, and `global` reaches all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from noctaya_charts.generated import CHARTS, NAMES
from noctaya_charts.helm import Helm, Object
from noctaya_charts.matrix import MATRIX

SHAPES = {
    "operator": "defaults",
    "gateway": "several",
    "aggregate-scaler": "usual",
    "prewarm-agent": "artifact",
}
CHART_NAMES = {name: yaml.safe_load((CHARTS / name / "Chart.yaml").read_text())["name"] for name in NAMES}


@pytest.fixture(scope="module")
def parent(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chart that has the four as dependencies."""
    folder = tmp_path_factory.mktemp("umbrella") / "platform"
    folder.mkdir()
    needed = [
        {"name": CHART_NAMES[name], "version": "0.5.0", "repository": f"file://{CHARTS / name}"}
        for name in NAMES
    ]
    described = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": needed}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(described))
    helm.run("dependency", "build", folder)
    return folder


def values(**given: Any) -> Object:
    return {CHART_NAMES[name]: {**MATRIX[name][shape], **own(name)} for name, shape in SHAPES.items()} | given


def own(name: str) -> Object:
    return {} if name == "operator" else {"name": f"of-{name}"}


def test_each_chart_renders_below_a_parent_what_it_renders_alone(helm: Helm, parent: Path) -> None:
    together = helm.template(parent, values())
    alone = [
        each
        for name, shape in SHAPES.items()
        for each in helm.template(CHARTS / name, {**MATRIX[name][shape], **own(name)})
    ]

    def ordered(objects: list[Object]) -> list[Object]:
        # Secrets are random in every rendering.
        plain = [{**each, "data": None} if each["kind"] == "Secret" else each for each in objects]
        return sorted(plain, key=lambda each: (each["kind"], each["metadata"]["name"]))

    assert ordered(together) == ordered(alone)


def test_global_reaches_every_pod(helm: Helm, parent: Path) -> None:
    given = {
        "imageRegistry": "mirror.example.com",
        "imagePullSecrets": ["mirror"],
        "ofSomebodyElse": {"a": 1},
    }
    pods = [
        each["spec"]["template"]["spec"]
        for each in helm.template(parent, values(**{"global": given}))
        if each["kind"] in {"Deployment", "Job"}
    ]
    assert len(pods) == 5
    for pod in pods:
        assert pod["imagePullSecrets"] == [{"name": "mirror"}]
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert container["image"].startswith("mirror.example.com/")
