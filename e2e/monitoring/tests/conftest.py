"""promtool, and the rules of examples/observability as Prometheus reads them."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from noctaya_parts.debian import ensure_packages

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "observability"


@pytest.fixture(scope="session")
def promtool() -> str:
    """Path of promtool, installed when it is missing."""
    if shutil.which("promtool") is None:
        ensure_packages("prometheus")
    found = shutil.which("promtool")
    assert found is not None
    return found


@pytest.fixture(scope="session")
def rules() -> dict[str, Any]:
    """The groups of the PrometheusRule."""
    document = yaml.safe_load((EXAMPLE / "rules.yaml").read_text())
    assert document["kind"] == "PrometheusRule"
    spec: dict[str, Any] = document["spec"]
    return spec
