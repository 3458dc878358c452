"""From manifests to what will be run on this machine. Reads the file system to check paths and programs,
starts nothing.

Everything that a cluster would provide and this machine doesn't has to be given (`--volume`, `--secret`) or
is refused with a message that says how; what is merely different becomes a note.
"""

import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from noctaya_api.gateway_environment import optional_environment
from noctaya_api.model_source import ModelSource, Scheme
from noctaya_api.names import ANNOTATION_KEEP, PATH_BACKEND_HEALTH
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.core import Probe as ApiProbe

from noctaya_cli.plan import PORT_VARIABLE, ContainerPlan, EndpointPlan, ServicePlan
from noctaya_cli.probes import Exec, GrpcHealth, HttpGet, Probe, Probes, TcpSocket
from noctaya_cli.rendering import (
    PlanError,
    RenderedContainer,
    namespace_of,
    render_container,
    resolve_keep,
    resolve_runtime,
    resolve_source,
    subject_of,
)
from noctaya_cli.scaling import ScalingPolicy

DEFAULT_GRACE = 30.0
DRAIN_ALLOWANCE = 10.0
"""Seconds a draining replica gets after its drain (contracts 2.2)."""
DEFAULT_STARTUP_FAILURES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What this machine offers in place of a cluster.

    `volumes`: directory of each PersistentVolumeClaim. `secrets`: directory of each Secret, one file a key.
    `path`: where programs are looked up (the value of PATH).
    """

    volumes: Mapping[str, Path] = field(default_factory=dict)
    secrets: Mapping[str, Path] = field(default_factory=dict)
    path: str = ""


def plan_services(
    services: list[LLMService], runtimes: list[InferenceRuntime], surroundings: Surroundings
) -> list[ServicePlan]:
    """Plan every service, in order. Raises PlanError for the first that can't be run."""
    return [plan_service(service, resolve_runtime(service, runtimes), surroundings) for service in services]


def plan_service(service: LLMService, runtime: InferenceRuntime, surroundings: Surroundings) -> ServicePlan:
    """Plan one service on its runtime; raises PlanError."""
    source = resolve_source(service)
    notes: list[str] = []
    model_path = locate_model(service, source, surroundings, note=notes.append)
    rendered = render_container(service, runtime, model_path=model_path)
    container = plan_container(service, runtime, rendered, source=source, note=notes.append)
    check_program(runtime, container, surroundings)
    if container.fixed_port:
        notes.append(f"argument {container.fixed_port} becomes each replica's own port")
    elif container.command_line(port=1) == container.command_line(port=2):
        notes.append(f"no argument names the port: the program has to read the variable {PORT_VARIABLE}")
    if runtime.spec.vendor != "cpu":
        notes.append(
            f"accelerators ({runtime.spec.accelerator.resource_name}) are not reserved or limited here"
        )
    if (
        service.spec.scaling.external_scaler is not None
        and service.spec.scaling.external_scaler.tls is not None
    ):
        notes.append("the ExternalScaler is on loopback without TLS here")
    if resolve_keep(service) is not None:
        notes.append(f"the annotation {ANNOTATION_KEEP} is not obeyed here: demand alone decides")
    scaling = service.spec.scaling
    return ServicePlan(
        name=service.metadata.name,
        namespace=namespace_of(service),
        runtime=runtime.name,
        model=source.uri,
        container=container,
        endpoint=plan_endpoint(service, container.probes, surroundings),
        scaling=ScalingPolicy(
            minimum=scaling.min,
            maximum=scaling.max,
            target=scaling.target,
            stabilization=scaling.scale_down_stabilization.seconds,
        ),
        notes=tuple(notes),
    )


def locate_model(
    service: LLMService, source: ModelSource, surroundings: Surroundings, *, note: Callable[[str], None]
) -> str:
    """What `{{ .Model.Path }}` is on this machine; raises PlanError."""
    subject, uri = subject_of(service), "spec.model.source.uri"
    if source.scheme in {Scheme.OCI, Scheme.S3}:
        raise PlanError(
            subject,
            uri,
            f"{source.scheme}:// models are fetched by a cluster's prewarm Job; here, fetch it yourself and "
            "use pvc://",
        )
    if source.scheme is not Scheme.PVC:
        note(f"the engine downloads {source.uri} itself, into its own default cache")
        return source.path
    directory = surroundings.volumes.get(source.claim)
    if directory is None:
        raise PlanError(subject, uri, f"say where the claim {source.claim} is: --volume {source.claim}=DIR")
    path = directory / source.subpath
    if not path.exists():
        raise PlanError(subject, uri, f"{path} does not exist (--volume {source.claim}={directory})")
    return str(path)


def plan_container(
    service: LLMService,
    runtime: InferenceRuntime,
    rendered: RenderedContainer,
    *,
    source: ModelSource,
    note: Callable[[str], None],
) -> ContainerPlan:
    """The container as a local process; raises PlanError."""
    subject, container = subject_of(runtime), runtime.spec.container
    if not rendered.command:
        raise PlanError(
            subject,
            "spec.container.command",
            f"is needed without a cluster: what the image {container.image} would start is not known here",
        )
    for entry in container.env:
        if entry.value_from is not None:
            place = f"spec.container.env[{entry.name}].valueFrom"
            raise PlanError(subject, place, "can't be resolved without a cluster; give a value")
    own = {name for name, _ in rendered.environment}
    environment = tuple(source.env.items()) + rendered.environment
    if PORT_VARIABLE in own:
        note(f"variable {PORT_VARIABLE} is set to each replica's own port")
    lifecycle = runtime.spec.lifecycle
    drain = 0.0
    grace = DEFAULT_GRACE
    if lifecycle is not None:
        given = float(lifecycle.termination_grace_period_seconds or 0)
        if lifecycle.pre_stop_drain:
            drain = float(math.ceil(service.spec.scaling.drain_timeout.seconds))
        grace = max(given, drain + DRAIN_ALLOWANCE) if drain else given or DEFAULT_GRACE
    return ContainerPlan(
        command=rendered.command,
        arguments=rendered.arguments,
        environment=environment,
        container_port=container.port.container_port,
        probes=plan_probes(runtime),
        drain=drain,
        grace=grace,
    )


def plan_probes(runtime: InferenceRuntime) -> Probes:
    """The runtime's probes, with the defaults of contracts 2.2."""
    health = runtime.spec.health
    default = Probe(HttpGet(path=PATH_BACKEND_HEALTH))
    startup, readiness, liveness = (
        (health.startup, health.readiness, health.liveness) if health is not None else (None, None, None)
    )
    return Probes(
        startup=plan_probe(runtime, startup)
        or Probe(default.action, failure_threshold=DEFAULT_STARTUP_FAILURES),
        readiness=plan_probe(runtime, readiness) or default,
        liveness=plan_probe(runtime, liveness),
    )


def plan_probe(runtime: InferenceRuntime, probe: ApiProbe | None) -> Probe | None:
    """One probe with Kubernetes' defaults for what is absent."""
    if probe is None:
        return None
    action: HttpGet | TcpSocket | Exec | GrpcHealth
    if probe.http_get is not None:
        get = probe.http_get
        action = HttpGet(
            path=get.path or "/",
            port=local_port(runtime, get.port),
            host=get.host or "",
            scheme=get.scheme or "HTTP",
            headers=tuple((header.name, header.value) for header in get.http_headers),
        )
    elif probe.tcp_socket is not None:
        action = TcpSocket(port=local_port(runtime, probe.tcp_socket.port), host=probe.tcp_socket.host or "")
    elif probe.grpc is not None:
        action = GrpcHealth(port=local_port(runtime, probe.grpc.port), service=probe.grpc.service)
    else:
        action = Exec(tuple(probe.exec.command) if probe.exec is not None else ())
    return Probe(
        action,
        initial_delay=float(probe.initial_delay_seconds or 0),
        period=float(probe.period_seconds or 10),
        timeout=float(probe.timeout_seconds or 1),
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )


def local_port(runtime: InferenceRuntime, port: int | str) -> int | None:
    """None (the replica's own port) for the container's port by number or name, else the number."""
    own = runtime.spec.container.port
    if port in {own.container_port, own.name, str(own.container_port)}:
        return None
    try:
        return int(port)
    except ValueError:
        raise PlanError(
            subject_of(runtime), "spec.health", f"a probe uses the unknown port {port!r}"
        ) from None


def plan_endpoint(service: LLMService, probes: Probes, surroundings: Surroundings) -> EndpointPlan:
    """What the gateway of the service is told; raises PlanError."""
    endpoint, scaling = service.spec.endpoint, service.spec.scaling
    readiness = probes.readiness.action if probes.readiness is not None else None
    key_file: Path | None = None
    if endpoint.authentication is not None:
        ref = endpoint.authentication.secret_ref
        place = "spec.endpoint.authentication.secretRef"
        directory = surroundings.secrets.get(ref.name)
        if directory is None:
            raise PlanError(
                subject_of(service),
                place,
                f"say where the Secret {ref.name} is: --secret {ref.name}=DIR (one file a key)",
            )
        key_file = directory / ref.key
        if not key_file.is_file():
            raise PlanError(
                subject_of(service), place, f"{key_file} does not exist (--secret {ref.name}={directory})"
            )
    return EndpointPlan(
        max_queue=endpoint.max_queue,
        cold_start_mode=endpoint.cold_start.mode,
        optional=optional_environment(endpoint),
        heartbeat_interval=endpoint.cold_start.heartbeat_interval.seconds,
        activation_timeout=scaling.activation_timeout.seconds,
        drain_timeout=scaling.drain_timeout.seconds,
        health_path=readiness.path if isinstance(readiness, HttpGet) else PATH_BACKEND_HEALTH,
        api_key_file=key_file,
    )


def check_program(runtime: InferenceRuntime, container: ContainerPlan, surroundings: Surroundings) -> None:
    """Raise PlanError when the command isn't a program of this machine."""
    program = container.command_line(port=container.container_port)[0]
    if shutil.which(program, path=surroundings.path) is None:
        raise PlanError(
            subject_of(runtime),
            "spec.container.command",
            f"{program} is not a program on this machine (PATH)",
        )
