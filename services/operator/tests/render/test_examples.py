"""R25: the shipped examples, read from their files: valid, resolved among each other, rendered whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from noctaya_api.manifests import Manifests, load_manifests
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_operator.defaults import Defaults
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan, plan_service
from samples import IMAGES, backend, engine, objects, pod_of

EXAMPLES = Path(__file__).parents[4] / "examples"
PRODUCT = "serving.noctaya.io/ascend-product"


@dataclass(frozen=True, kw_only=True)
class Profile:
    runtime: str
    service: str
    image: str
    resource: str
    nodes: dict[str, str]
    failures: int
    command: tuple[str, ...] = ()
    grace: int = 130
    """The default drain of 120 s and 10 s more."""


def nvidia(device: str, service: str) -> Profile:
    return Profile(
        runtime=f"vllm-nvidia-{device}",
        service=service,
        image="vllm/vllm-openai:v0.25.1",
        resource="nvidia.com/gpu",
        nodes={"nvidia.com/gpu.product": f"NVIDIA-{device.upper()}"},
        failures=120,
    )


def ascend(runtime: str, service: str, tag: str, chip: str, product: str, *, grace: int = 130) -> Profile:
    return Profile(
        runtime=runtime,
        service=service,
        image=f"quay.io/ascend/vllm-ascend:{tag}",
        resource=f"huawei.com/{chip}",
        nodes={"accelerator": f"huawei-{chip}", PRODUCT: product},
        failures=180,
        command=("vllm", "serve"),
        grace=grace,
    )


PROFILES = {
    "nvidia/a10": nvidia("a10", "qwen2-5-7b-a10"),
    "nvidia/a100": nvidia("a100", "qwen3-8b-a100"),
    "ascend/310p-duo": ascend(
        "vllm-ascend-310p-duo",
        "qwen-310p-duo-validation",
        "v0.22.1rc1-310p",
        "Ascend310P",
        "atlas-300i-duo",
    ),
    "ascend/310p-pro": ascend(
        "vllm-ascend-310p-pro",
        "qwen-310p-pro-validation",
        "v0.22.1rc1-310p",
        "Ascend310P",
        "atlas-300i-pro",
    ),
    "ascend/910b3": ascend(
        "vllm-ascend", "qwen-910b-validation", "v0.21.0rc1", "Ascend910", "ascend-910b3", grace=120
    ),
}


def planned(folder: str, *, among: tuple[InferenceRuntime, ...] = (), gateways: int = 1) -> ServicePlan:
    manifests = load_manifests([EXAMPLES / folder])
    defaults = Defaults(images=IMAGES, gateway_replicas=gateways)
    given = in_a_cluster(manifests.services[0])
    return plan_service(given, runtimes=among or manifests.runtimes, defaults=defaults)


def in_a_cluster(service: LLMService) -> LLMService:
    placed: Object = service.manifest()
    placed["metadata"] |= {"namespace": "team", "uid": f"uid-of-{service.name}", "generation": 1}
    return LLMService.model_validate(placed)


def everything() -> Manifests:
    return load_manifests([EXAMPLES / folder for folder in (*PROFILES, "quickstart")])


def test_r25_there_is_an_example_for_each_profile_and_no_other() -> None:
    folders = {str(file.parent.relative_to(EXAMPLES)) for file in EXAMPLES.rglob("service.yaml")}
    assert {name for name in folders if not name.startswith("security/")} == {*PROFILES, "quickstart"}


@pytest.mark.parametrize("folder", PROFILES)
def test_r25_an_example_is_one_runtime_and_one_service_that_kustomize_finds(folder: str) -> None:
    manifests = load_manifests([EXAMPLES / folder])
    profile = PROFILES[folder]
    assert [runtime.name for runtime in manifests.runtimes] == [profile.runtime]
    assert [service.name for service in manifests.services] == [profile.service]
    listed = yaml.safe_load((EXAMPLES / folder / "kustomization.yaml").read_text())["resources"]
    assert set(listed) == {"runtime.yaml", "service.yaml"}


@pytest.mark.parametrize("folder", PROFILES)
def test_r25_an_example_gets_its_device_and_its_nodes(folder: str) -> None:
    profile, plan = PROFILES[folder], planned(folder)
    pod, container = pod_of(backend(plan)), engine(plan)
    assert container["image"] == profile.image
    assert container["resources"]["limits"][profile.resource] == "1"
    assert pod["nodeSelector"] == profile.nodes
    assert pod["terminationGracePeriodSeconds"] == profile.grace
    assert container["startupProbe"]["failureThreshold"] == profile.failures
    assert container["livenessProbe"]["failureThreshold"] == 6
    assert container["args"][: len(profile.command)] == list(profile.command)
    path = plan.source.path if plan.prewarm is None else plan.prewarm.target
    assert container["args"][len(profile.command)] == path
    assert profile.service in container["args"]


@pytest.mark.parametrize("gateways", [1, 2])
@pytest.mark.parametrize("folder", [*PROFILES, "quickstart"])
def test_r25_every_example_renders_whole(folder: str, gateways: int) -> None:
    plan = planned(folder, gateways=gateways)
    rendered = objects(plan)
    assert len(rendered) == len(plan.wanted_names())
    assert "{{" not in str(rendered)


@pytest.mark.parametrize("folder", [*PROFILES, "quickstart"])
def test_r25_every_example_finds_its_runtime_among_all_of_them(folder: str) -> None:
    alone = planned(folder)
    assert planned(folder, among=everything().runtimes).runtime == alone.runtime


def test_r25_weights_are_downloaded_ahead_where_they_are_large() -> None:
    prewarmed = {folder for folder in PROFILES if planned(folder).prewarm is not None}
    assert prewarmed == {"nvidia/a10", "nvidia/a100"}


def test_the_quickstart_needs_no_device_and_mounts_the_claim_it_names() -> None:
    plan = planned("quickstart")
    assert "Job/smollm2-prewarm" not in objects(plan)
    assert engine(plan)["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"memory": "1Gi"},
    }
    claims = [volume.get("persistentVolumeClaim") for volume in pod_of(backend(plan))["volumes"]]
    assert {"claimName": "models", "readOnly": True} in claims


def test_the_root_of_the_examples_applies_nothing() -> None:
    root = yaml.safe_load((EXAMPLES / "kustomization.yaml").read_text())
    assert root["kind"] == "Kustomization"
    assert root["resources"] == []
