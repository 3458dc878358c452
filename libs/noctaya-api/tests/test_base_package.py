"""The base package imports with nothing but pydantic installed; what needs more says which extra."""

import subprocess
import sys

BASE = [
    "names",
    "conditions",
    "duration",
    "quantity",
    "model_source",
    "template",
    "runtime_selection",
    "structural",
    "preflight",
    "crd",
    "crd_reference",
    "v1alpha1",
]
BLOCKED = (
    "yaml grpc google uvicorn fastapi starlette httptools prometheus_client opentelemetry pydantic_settings"
)


def run(code: str) -> subprocess.CompletedProcess[str]:
    blocked = f"import sys\nfor name in {BLOCKED.split()}: sys.modules[name] = None\n"
    return subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False)


def test_the_base_modules_need_pydantic_only() -> None:
    done = run("".join(f"import noctaya_api.{name}\n" for name in BASE))
    assert done.returncode == 0, done.stderr


def test_reading_manifests_without_yaml_names_the_extra() -> None:
    done = run("import noctaya_api.manifests\n")
    assert done.returncode == 1
    assert "ImportError: reading YAML needs PyYAML: install noctaya-api[yaml]" in done.stderr


def test_generating_crds_without_yaml_names_the_extra() -> None:
    done = run("from noctaya_api.crd import main\nmain(['--output', '/nonexistent', '--check'])\n")
    assert done.returncode == 1
    assert "ImportError: generating the CRDs needs PyYAML: install noctaya-api[yaml]" in done.stderr
