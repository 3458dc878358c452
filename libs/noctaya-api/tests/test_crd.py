from pathlib import Path

import pytest
import yaml
from noctaya_api.crd import RESOURCES, main, render_crd, render_files

REPOSITORY = Path(__file__).parents[3]


def test_the_committed_crds_and_reference_are_what_the_models_say() -> None:
    files = render_files(REPOSITORY / "charts/operator/files/crds", REPOSITORY / "docs/crd.md")
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, f"{path} is stale: run python -m noctaya_api.crd"


def test_the_crd_of_a_service_is_that_of_the_contract() -> None:
    crd = render_crd(RESOURCES[0])
    version = crd["spec"]["versions"][0]
    schema = version.pop("schema")["openAPIV3Schema"]
    assert crd == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "llmservices.serving.noctaya.io",
            "annotations": {"controller-gen.kubebuilder.io/version": "v0.21.0"},
        },
        "spec": {
            "group": "serving.noctaya.io",
            "names": {
                "kind": "LLMService",
                "listKind": "LLMServiceList",
                "plural": "llmservices",
                "singular": "llmservice",
                "shortNames": ["llm"],
                "categories": ["noctaya"],
            },
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [
                        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                        {"name": "Runtime", "type": "string", "jsonPath": ".status.resolvedRuntime"},
                        {"name": "Replicas", "type": "integer", "jsonPath": ".status.replicas"},
                        {
                            "name": "Kept",
                            "type": "string",
                            "jsonPath": ".status.keep.state",
                            "priority": 1,
                        },
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "subresources": {"status": {}},
                }
            ],
        },
    }
    assert schema["required"] == ["spec"]
    assert schema["properties"]["metadata"] == {"type": "object"}


def test_the_crd_of_a_runtime_is_that_of_the_contract() -> None:
    spec = render_crd(RESOURCES[1])["spec"]
    assert spec["scope"] == "Cluster"
    assert spec["names"] == {
        "kind": "InferenceRuntime",
        "listKind": "InferenceRuntimeList",
        "plural": "inferenceruntimes",
        "singular": "inferenceruntime",
        "shortNames": ["ir"],
        "categories": ["noctaya"],
    }
    assert spec["versions"][0]["subresources"] == {"status": {}}
    assert spec["versions"][0]["additionalPrinterColumns"] == [
        {"name": "Family", "type": "string", "jsonPath": ".spec.family"},
        {"name": "Vendor", "type": "string", "jsonPath": ".spec.vendor"},
        {"name": "Image", "type": "string", "jsonPath": ".spec.container.image", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def test_the_command_writes_files_that_its_check_accepts(tmp_path: Path) -> None:
    options = ["--output", str(tmp_path / "crds"), "--docs", str(tmp_path / "crd.md")]
    assert main([*options, "--check"]) == 1
    assert main(options) == 0
    assert main([*options, "--check"]) == 0
    names = sorted(path.name for path in (tmp_path / "crds").iterdir())
    assert names == ["serving.noctaya.io_inferenceruntimes.yaml", "serving.noctaya.io_llmservices.yaml"]
    for resource in RESOURCES:
        text = (tmp_path / "crds" / resource.file_name).read_text(encoding="utf-8")
        assert yaml.safe_load(text) == render_crd(resource)


@pytest.mark.parametrize("stale", ["crds/serving.noctaya.io_llmservices.yaml", "crd.md"])
def test_the_check_fails_and_shows_what_differs(
    stale: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--output", str(tmp_path / "crds"), "--docs", str(tmp_path / "crd.md")]
    main(options)
    path = tmp_path / stale
    path.write_text(path.read_text(encoding="utf-8") + "odd line\n", encoding="utf-8")
    capsys.readouterr()
    assert main([*options, "--check"]) == 1
    shown = capsys.readouterr()
    assert "-odd line\n" in shown.out
    assert "1 generated file(s) differ" in shown.err


def test_the_reference_names_every_field_with_default_and_rules() -> None:
    text = (REPOSITORY / "docs/crd.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
    assert "| `5m` |" in rows["`spec.scaling.activationTimeout`"]
    assert "at least 1" in rows["`spec.endpoint.maxQueue`"]
    assert "required" in rows["`spec.container.image`"]
    assert "one of `nvidia`, `ascend`, `amd`, `intel`, `cpu`" in rows["`spec.vendor`"]
    assert "list of string" in rows["`spec.container.args`"]
    assert "map of string" in rows["`spec.accelerator.nodeSelector`"]
    assert "quantity" in rows["`spec.cache.size`"]
