"""From manifests to what will be run."""

import sys
from pathlib import Path
from typing import Any

import pytest
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_cli.plan import ServicePlan
from noctaya_cli.planning import Surroundings, plan_services
from noctaya_cli.probes import Exec, GrpcHealth, HttpGet, Probe, TcpSocket
from noctaya_cli.rendering import PlanError
from noctaya_cli.scaling import ScalingPolicy

PYTHON = Path(sys.executable)


def runtime(container: dict[str, Any] | None = None, **spec: Any) -> InferenceRuntime:
    default = {
        "image": "example/model",
        "command": [PYTHON.name],
        "args": ["--model", "{{ .Model.Path }}", "--port", "8000"],
        "port": {},
    }
    whole = {"vendor": "cpu", "container": default | (container or {})} | spec
    return InferenceRuntime.model_validate({"metadata": {"name": "engine"}, "spec": whole})


def service(uri: str = "pvc://models/tiny", **spec: Any) -> LLMService:
    whole = {"model": {"source": {"uri": uri}}, "runtime": {"name": "engine"}} | spec
    return LLMService.model_validate({"metadata": {"name": "tiny"}, "spec": whole})


@pytest.fixture
def here(tmp_path: Path) -> Surroundings:
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "api").write_text("secret\n")
    volumes, secrets = {"models": tmp_path / "models"}, {"keys": tmp_path / "keys"}
    return Surroundings(volumes=volumes, secrets=secrets, path=str(PYTHON.parent))


def plan(
    here: Surroundings, svc: LLMService | None = None, engine: InferenceRuntime | None = None
) -> ServicePlan:
    (planned,) = plan_services([svc or service()], [engine or runtime()], here)
    return planned


def refusal(here: Surroundings, svc: LLMService | None = None, engine: InferenceRuntime | None = None) -> str:
    with pytest.raises(PlanError) as caught:
        plan(here, svc, engine)
    return str(caught.value)


def test_a_claim_is_the_directory_that_was_given_for_it(here: Surroundings) -> None:
    container = plan(here).container
    directory = here.volumes["models"] / "tiny"
    assert container.command_line(port=8123) == [PYTHON.name, "--model", str(directory), "--port", "8123"]


def test_a_claim_without_a_directory_names_the_option(here: Surroundings) -> None:
    assert refusal(here, service("pvc://other/x")) == (
        "LLMService/tiny: spec.model.source.uri: say where the claim other is: --volume other=DIR"
    )


def test_a_path_that_is_not_in_the_claim_is_an_error(here: Surroundings) -> None:
    message = refusal(here, service("pvc://models/none"))
    assert "models/none does not exist" in message


def test_hub_models_are_passed_on_with_a_note(here: Surroundings) -> None:
    planned = plan(here, service("hf://org/name"))
    assert "org/name" in planned.container.command_line(port=1)
    assert any("downloads hf://org/name itself" in note for note in planned.notes)


def test_modelscope_models_bring_their_environment(here: Surroundings) -> None:
    planned = plan(here, service("modelscope://org/name"))
    assert planned.container.process_environment(port=1, base={})["VLLM_USE_MODELSCOPE"] == "true"


def test_oci_models_are_refused_with_a_way_out(here: Surroundings) -> None:
    assert "use pvc://" in refusal(here, service(f"oci://registry.example/m@sha256:{'0' * 64}"))


def test_an_image_without_a_command_can_not_be_run(here: Surroundings) -> None:
    assert refusal(here, None, runtime({"command": []})) == (
        "InferenceRuntime/engine: spec.container.command: is needed without a cluster: what the image "
        "example/model would start is not known here"
    )


def test_a_command_that_is_no_program_here_is_an_error(here: Surroundings) -> None:
    assert "no-such-engine is not a program" in refusal(here, None, runtime({"command": ["no-such-engine"]}))


def test_values_from_elsewhere_are_refused(here: Surroundings) -> None:
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    message = refusal(here, None, runtime({"env": env}))
    assert message.startswith(
        "InferenceRuntime/engine: spec.container.env[TOKEN].valueFrom: can't be resolved"
    )


def test_environment_is_rendered_then_expanded_and_port_is_ours(here: Surroundings) -> None:
    env = [
        {"name": "NAME", "value": "{{ .Service.Name }}"},
        {"name": "WHERE", "value": "$(NAME):$(PORT)"},
        {"name": "PORT", "value": "8000"},
    ]
    planned = plan(here, None, runtime({"env": env, "args": ["$(WHERE)", "$$(NAME)"]}))
    environment = planned.container.process_environment(port=8123, base={"HOME": "/home/me"})
    assert environment == {"HOME": "/home/me", "NAME": "tiny", "WHERE": "tiny:8123", "PORT": "8123"}
    assert planned.container.command_line(port=8123)[1:] == ["tiny:8123", "$(NAME)"]


@pytest.mark.parametrize(
    ("arguments", "expected", "fixed"),
    [
        (["--port", "8000"], ["--port", "8123"], "--port 8000"),
        (["--port=8000"], ["--port=8123"], "--port=8000"),
        (["--port", "$(PORT)"], ["--port", "8123"], ""),
        (["--metrics", "8000", "8000"], ["--metrics", "8000", "8000"], ""),
        (["--port", "9000"], ["--port", "9000"], ""),
    ],
)
def test_only_the_containers_port_after_the_port_option_is_rewritten(
    here: Surroundings, arguments: list[str], expected: list[str], fixed: str
) -> None:
    planned = plan(here, None, runtime({"args": arguments}))
    assert planned.container.command_line(port=8123)[1:] == expected
    assert planned.container.fixed_port == fixed
    assert any("own port" in note for note in planned.notes) == bool(fixed)


def test_arguments_of_the_service_come_after_those_of_the_runtime(here: Surroundings) -> None:
    svc = service(runtime={"name": "engine", "argsOverride": ["--name", "{{ .Service.Name }}"]})
    assert plan(here, svc).container.command_line(port=1)[-2:] == ["--name", "tiny"]


def test_probes_default_to_health_on_the_replicas_own_port(here: Surroundings) -> None:
    probes = plan(here).container.probes
    assert probes.startup == Probe(HttpGet("/health"), period=10, failure_threshold=60)
    assert probes.readiness == Probe(HttpGet("/health"), period=10, timeout=1, failure_threshold=3)
    assert probes.liveness is None


def test_probes_of_every_kind_are_taken_over(here: Surroundings) -> None:
    health = {
        "startup": {"tcpSocket": {"port": "http"}, "periodSeconds": 2, "failureThreshold": 9},
        "readiness": {
            "httpGet": {"path": "/ready", "port": 8000, "httpHeaders": [{"name": "x", "value": "y"}]},
            "successThreshold": 2,
        },
        "liveness": {"exec": {"command": ["true"]}, "initialDelaySeconds": 3, "timeoutSeconds": 4},
    }
    planned = plan(here, None, runtime(health=health))
    assert planned.container.probes.startup == Probe(TcpSocket(), period=2, failure_threshold=9)
    assert planned.container.probes.readiness == Probe(
        HttpGet("/ready", headers=(("x", "y"),)), success_threshold=2
    )
    assert planned.container.probes.liveness == Probe(Exec(("true",)), initial_delay=3, timeout=4)
    assert planned.endpoint.health_path == "/ready"


def test_a_probe_of_another_port_keeps_it(here: Surroundings) -> None:
    planned = plan(here, None, runtime(health={"startup": {"grpc": {"port": 9000, "service": "s"}}}))
    assert planned.container.probes.startup is not None
    assert planned.container.probes.startup.action == GrpcHealth(port=9000, service="s")


def test_a_probe_of_an_unknown_port_name_is_an_error(here: Surroundings) -> None:
    engine = runtime(health={"startup": {"tcpSocket": {"port": "grpc"}}})
    assert "unknown port 'grpc'" in refusal(here, None, engine)


@pytest.mark.parametrize(
    ("lifecycle", "drain_timeout", "drain", "grace"),
    [
        (None, "2m", 0, 30),
        ({"terminationGracePeriodSeconds": 7}, "2m", 0, 7),
        ({"preStopDrain": True}, "90s", 90, 100),
        ({"preStopDrain": True, "terminationGracePeriodSeconds": 300}, "90s", 90, 300),
        ({"preStopDrain": True}, "1500ms", 2, 12),
        ({"preStopDrain": True, "terminationGracePeriodSeconds": 5}, "1500ms", 2, 12),
        ({"preStopDrain": True}, "0s", 0, 30),
    ],
)
def test_drain_and_grace(
    here: Surroundings, lifecycle: dict[str, Any] | None, drain_timeout: str, drain: float, grace: float
) -> None:
    svc = service(scaling={"drainTimeout": drain_timeout})
    container = plan(here, svc, runtime(lifecycle=lifecycle)).container
    assert (container.drain, container.grace) == (drain, grace)


def test_scaling_and_endpoint_are_taken_over(here: Surroundings) -> None:
    svc = service(
        scaling={
            "min": 1,
            "max": 3,
            "target": 7,
            "scaleDownStabilization": "40s",
            "activationTimeout": "90s",
        },
        endpoint={
            "maxQueue": 5,
            "coldStart": {"mode": "reject", "heartbeats": False, "heartbeatInterval": "300ms"},
            "authentication": {
                "secretRef": {"name": "keys", "key": "api"},
                "limits": {"concurrentRequests": 3},
            },
            "accessLog": "all",
        },
    )
    planned = plan(here, svc)
    assert planned.scaling == ScalingPolicy(minimum=1, maximum=3, target=7, stabilization=40)
    endpoint = planned.endpoint
    assert (endpoint.max_queue, endpoint.cold_start_mode) == (5, "reject")
    assert endpoint.optional == {
        "NOCTAYA_HEARTBEATS": "false",
        "NOCTAYA_ACCESS_LOG": "all",
        "NOCTAYA_KEY_CONCURRENT_REQUESTS": "3",
    }
    assert (endpoint.heartbeat_interval, endpoint.activation_timeout) == (0.3, 90)
    assert endpoint.api_key_file == here.secrets["keys"] / "api"


def test_authentication_without_its_secret_names_the_option(here: Surroundings) -> None:
    svc = service(endpoint={"authentication": {"secretRef": {"name": "other", "key": "api"}}})
    assert "--secret other=DIR" in refusal(here, svc)


def test_a_key_that_is_not_in_the_secret_is_an_error(here: Surroundings) -> None:
    svc = service(endpoint={"authentication": {"secretRef": {"name": "keys", "key": "none"}}})
    assert "keys/none does not exist" in refusal(here, svc)


def test_accelerators_are_noted(here: Surroundings) -> None:
    engine = runtime(vendor="nvidia", accelerator={"resourceName": "nvidia.com/gpu"})
    assert "accelerators (nvidia.com/gpu) are not reserved or limited here" in plan(here, None, engine).notes


def test_a_missing_runtime_names_the_field(here: Surroundings) -> None:
    assert refusal(here, service(runtime={"name": "none"})).startswith("LLMService/tiny: spec.runtime.name: ")
    message = refusal(here, service(runtime={"selector": {"vendor": ["nvidia"]}}))
    assert message.startswith("LLMService/tiny: spec.runtime.selector.vendor: ")


def test_what_a_service_is_kept_in_a_cluster_is_not_obeyed_here_and_said_so(here: Surroundings) -> None:
    kept = service()
    kept.metadata.annotations["serving.noctaya.io/keep"] = "awake 2"
    planned = plan(here, kept)
    assert planned.scaling.minimum == 0
    assert "the annotation serving.noctaya.io/keep is not obeyed here: demand alone decides" in planned.notes
    kept.metadata.annotations["serving.noctaya.io/keep"] = "for ever"
    assert refusal(here, kept).startswith("LLMService/tiny: metadata.annotations[serving.noctaya.io/keep]: ")
