"""Whatever is planned renders to objects that fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import PlanError
from noctaya_operator.render import render_all
from samples import OCI, RESOURCES, TOKEN, plan, pod_of, runtime, service

NAME = st.from_regex(r"[a-z]([-a-z0-9]{0,53}[a-z0-9])?", fullmatch=True)
LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
TLS = {"tls": {"serverSecretName": "tls", "authenticationRef": {"name": "mtls"}}}
ENV_NAMES = ("HF_HOME", "MODELSCOPE_CACHE", "VLLM_USE_MODELSCOPE", "HF_TOKEN", "OTHER")

services = st.fixed_dictionaries(
    {
        "name": NAME,
        "namespace": NAME,
        "uri": st.sampled_from(["hf://a/b@v1", "modelscope://a/b", "pvc://claim/dir", OCI]),
        "cache": st.fixed_dictionaries(
            {
                "strategy": st.sampled_from(["NodeLocalPVC", "SharedPVC", "HostPath", "None"]),
                "prewarm": st.booleans(),
                "retain": st.booleans(),
            }
        ),
        "scaling": st.fixed_dictionaries(
            {"max": st.integers(1, 3), "drainTimeout": st.sampled_from(["0s", "1500ms", "1h"])},
            optional={"externalScaler": st.just(TLS)},
        ),
        "endpoint": st.fixed_dictionaries(
            {}, optional={"authentication": st.just({"secretRef": {"name": "keys", "key": "k"}})}
        ),
    }
)
runtimes = st.fixed_dictionaries(
    {
        "vendor": st.sampled_from([*RESOURCES, "cpu"]),
        "container": st.fixed_dictionaries(
            {
                "env": st.lists(
                    st.builds(
                        lambda name, value: {"name": name, "value": value},
                        st.sampled_from(ENV_NAMES),
                        st.sampled_from(["/cache/x", "x", ""]),
                    )
                )
            }
        ),
        "lifecycle": st.fixed_dictionaries({"preStopDrain": st.booleans()}),
    }
)


def pods(rendered: list[Object]) -> Iterator[Object]:
    for obj in rendered:
        if "template" in obj.get("spec", {}):
            yield pod_of(obj)


def containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


@settings(max_examples=60, deadline=None)
@given(services, runtimes, st.integers(1, 3))
def test_objects_fit_together(given_service: Object, given_runtime: Object, gateways: int) -> None:
    try:
        planned = plan(service(**given_service), on=runtime(**given_runtime), gateways=gateways)
    except PlanError as refused:
        assert refused.message
        return
    rendered = [each.object for each in render_all(planned, demand_token=TOKEN)]
    for obj in rendered:
        assert all(LABEL.fullmatch(value) for value in obj["metadata"]["labels"].values())
        assert len(obj["metadata"]["name"]) <= 63
    for pod in pods(rendered):
        volumes = [volume["name"] for volume in pod["volumes"]]
        assert len(volumes) == len(set(volumes))
        mounted = [mount["name"] for each in containers(pod) for mount in each.get("volumeMounts", ())]
        assert set(mounted) == set(volumes)
        for each in containers(pod):
            variables = [entry["name"] for entry in each.get("env", ())]
            assert len(variables) == len(set(variables))
            places = [mount["mountPath"] for mount in each.get("volumeMounts", ())]
            assert len(places) == len(set(places))


@settings(max_examples=60, deadline=None)
@given(services, runtimes, st.integers(1, 3))
def test_every_service_finds_pods_and_no_others(
    given_service: Object, given_runtime: Object, gateways: int
) -> None:
    try:
        planned = plan(service(**given_service), on=runtime(**given_runtime), gateways=gateways)
    except PlanError:
        return
    rendered = [each.object for each in render_all(planned, demand_token=TOKEN)]
    templates = {
        f"{obj['kind']}/{obj['metadata']['name']}": obj["spec"]["template"]
        for obj in rendered
        if "template" in obj.get("spec", {})
    }
    for obj in rendered:
        if obj["kind"] != "Service":
            continue
        selector, spec = obj["spec"]["selector"], obj["spec"]
        (found,) = [
            each for each in templates.values() if selector.items() <= each["metadata"]["labels"].items()
        ]
        ports = [port for each in found["spec"]["containers"] for port in each["ports"]]
        known = {port["name"] for port in ports} | {port["containerPort"] for port in ports}
        assert {port["targetPort"] for port in spec["ports"]} <= known
