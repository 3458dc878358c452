"""Services, runtimes and plans for tests of planning and rendering: small, changed by overrides."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_operator import precedent as precedents
from noctaya_operator.defaults import Defaults, Images
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan, plan_service
from noctaya_operator.precedent import Precedent
from noctaya_operator.render import Rendered, render_all

TOKEN = "A" * 43
DIGEST = "0123456789abcdef" * 4
OCI = f"oci://registry.example.com:5000/models/tiny@sha256:{DIGEST}"
IMAGES = Images(
    gateway="example.com/gateway:1",
    aggregate_scaler="example.com/scaler:1",
    prewarm="example.com/prewarm:1",
    oras="example.com/oras:1",
)


def raw_service(
    *, name: str = "chat", namespace: str = "team", uri: str = "hf://org/model", **spec: Any
) -> Object:
    """An LLMService as the API server has it; keyword arguments are fields of its spec."""
    base: Object = {"model": {"source": {"uri": uri}}, "runtime": {"name": "engine"}}
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "LLMService",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "generation": 1},
        "spec": merged(base, spec),
    }


def service(**given: Any) -> LLMService:
    return LLMService.model_validate(raw_service(**given))


def runtime(*, name: str = "engine", vendor: str = "nvidia", **spec: Any) -> InferenceRuntime:
    base: Object = {
        "vendor": vendor,
        "container": {"image": "example.com/engine:1", "args": ["{{ .Model.Path }}"], "port": {}},
        "accelerator": {} if vendor == "cpu" else {"resourceName": RESOURCES[vendor]},
    }
    return InferenceRuntime.model_validate({"metadata": {"name": name}, "spec": merged(base, spec)})


RESOURCES = {
    "nvidia": "nvidia.com/gpu",
    "ascend": "huawei.com/Ascend910",
    "amd": "amd.com/gpu",
    "intel": "gpu.intel.com/xe",
}


def plan(
    given: LLMService | None = None,
    *,
    on: InferenceRuntime | None = None,
    gateways: int = 1,
    images: Images = IMAGES,
    precedent: Precedent = precedents.NONE,
    tracing: tuple[tuple[str, str], ...] = (),
    traces_headers_secret: str = "",
) -> ServicePlan:
    defaults = Defaults(
        images=images,
        gateway_replicas=gateways,
        tracing=tracing,
        traces_headers_secret=traces_headers_secret,
    )
    return plan_service(
        given or service(), runtimes=[on or runtime()], defaults=defaults, precedent=precedent
    )


FROM_ALPHA = Precedent(hub_cache=True)
"""The prewarm Job that is there is the alpha's, or does as it did."""


def rendered(planned: ServicePlan, *, hold_at_zero: bool = False) -> dict[str, Rendered]:
    """All objects of a plan by `Kind/name`."""
    found = render_all(planned, demand_token=TOKEN, hold_at_zero=hold_at_zero)
    return {f"{each.ref.resource.kind}/{each.ref.key.name}": each for each in found}


def objects(planned: ServicePlan, *, hold_at_zero: bool = False) -> dict[str, Object]:
    return {name: each.object for name, each in rendered(planned, hold_at_zero=hold_at_zero).items()}


def backend(planned: ServicePlan) -> Object:
    return objects(planned)[f"Deployment/{planned.names.service}"]


def pod_of(deployment: Object) -> Object:
    pod: Object = deployment["spec"]["template"]["spec"]
    return pod


def engine(planned: ServicePlan) -> Object:
    """The serving container."""
    container: Object = pod_of(backend(planned))["containers"][0]
    return container


def gateway(planned: ServicePlan) -> Object:
    return objects(planned)[f"Deployment/{planned.names.service}-gateway"]


def env_of(container: Object) -> dict[str, str]:
    """Literal environment of a container."""
    return {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Object:
    """`base` with `changes` laid over it, mapping by mapping."""
    result = deepcopy(dict(base))
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else deepcopy(value)
    return result
