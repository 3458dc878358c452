"""The Kubernetes core types that the API embeds, complete: probes, environment, tolerations, references.

Their schemas must stand in the CRDs in full, because a structural schema can't refer to another API. What
the API server only fills in when a Pod is created (a probe's period, for instance) is no default here: the
stored object stays as written.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from noctaya_api.v1alpha1.base import LIST_TYPE, MAP_TYPE, KubeModel, Rule
from noctaya_api.v1alpha1.scalars import INT_OR_STRING, Bool, Divisor, Int32, Int64, int_or_string_schema

_ATOMIC_LIST: JsonDict = {LIST_TYPE: "atomic"}
ObjectName = Annotated[
    str, Field(description="Name of the referenced object, in the namespace of the service.")
]


class Port:
    """Annotation of a port given by number or by name."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """An integer or a string."""
        return int_or_string_schema("must be a port number or the name of a container port")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The int-or-string extension."""
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], INT_OR_STRING: True}


IntOrString = Annotated[int | str, Port]


class LocalObjectReference(KubeModel):
    """Names an object in the same namespace."""

    schema_extra: ClassVar = {MAP_TYPE: "atomic"}

    name: ObjectName = ""


class ConfigMapKeySelector(KubeModel):
    """One key of a ConfigMap."""

    schema_extra: ClassVar = {MAP_TYPE: "atomic"}

    name: ObjectName = ""
    key: str = Field(description="Key to read.")
    optional: Bool | None = Field(default=None, description="Whether the container may start without it.")


class SecretKeySelector(KubeModel):
    """One key of a Secret."""

    schema_extra: ClassVar = {MAP_TYPE: "atomic"}

    name: ObjectName = ""
    key: str = Field(description="Key to read.")
    optional: Bool | None = Field(default=None, description="Whether the container may start without it.")


class ObjectFieldSelector(KubeModel):
    """A field of the Pod itself."""

    schema_extra: ClassVar = {MAP_TYPE: "atomic"}

    api_version: str | None = Field(
        default=None, description="API version the path is written for; v1 if absent."
    )
    field_path: str = Field(description="Path of the field, for example metadata.name.")


class ResourceFieldSelector(KubeModel):
    """A resource request or limit of a container of the Pod."""

    schema_extra: ClassVar = {MAP_TYPE: "atomic"}

    container_name: str | None = Field(
        default=None, description="Container to look at; required in volumes only."
    )
    divisor: Divisor | None = Field(default=None, description="Unit of the value; 1 if absent.")
    resource: str = Field(description="Resource to read, for example limits.memory.")


class FileKeySelector(KubeModel):
    """One key of an environment file in a volume."""

    schema_extra: ClassVar = {MAP_TYPE: "atomic"}

    key: str = Field(description="Variable to read from the file.")
    optional: Bool = Field(
        default=False, description="Whether the container may start without the file or key."
    )
    path: str = Field(description="Path of the file, relative to the volume, without dot-dot components.")
    volume_name: str = Field(description="Volume that holds the file.")


class EnvVarSource(KubeModel):
    """Where the value of an environment variable comes from."""

    config_map_key_ref: ConfigMapKeySelector | None = Field(default=None, description="A key of a ConfigMap.")
    field_ref: ObjectFieldSelector | None = Field(default=None, description="A field of the Pod.")
    file_key_ref: FileKeySelector | None = Field(default=None, description="A key of a file in a volume.")
    resource_field_ref: ResourceFieldSelector | None = Field(
        default=None, description="A resource request or limit of a container."
    )
    secret_key_ref: SecretKeySelector | None = Field(default=None, description="A key of a Secret.")


class EnvVar(KubeModel):
    """One environment variable."""

    name: str = Field(description="Name of the variable.")
    value: str | None = Field(default=None, description="Literal value; may contain template actions.")
    value_from: EnvVarSource | None = Field(
        default=None, description="Source of the value instead of a literal."
    )


class ExecAction(KubeModel):
    """A command run in the container."""

    command: list[str] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Program and arguments; no shell is involved. Exit status 0 means healthy.",
        json_schema_extra=_ATOMIC_LIST,
    )


class HTTPHeader(KubeModel):
    """One request header of a probe."""

    name: str = Field(description="Name of the header.")
    value: str = Field(description="Value of the header.")


class HTTPGetAction(KubeModel):
    """An HTTP GET; any status from 200 to 399 means healthy."""

    host: str | None = Field(default=None, description="Host to connect to; the Pod's address if absent.")
    http_headers: list[HTTPHeader] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Additional request headers.",
        json_schema_extra=_ATOMIC_LIST,
    )
    path: str | None = Field(default=None, description="Path to request; / if absent.")
    port: IntOrString = Field(description="Port number, or name of a container port.")
    scheme: str | None = Field(default=None, description="HTTP or HTTPS; HTTP if absent.")


class TCPSocketAction(KubeModel):
    """A TCP connection that only has to open."""

    host: str | None = Field(default=None, description="Host to connect to; the Pod's address if absent.")
    port: IntOrString = Field(description="Port number, or name of a container port.")


class GRPCAction(KubeModel):
    """A call of the standard gRPC health service."""

    port: Int32 = Field(description="Port number.")
    service: str = Field(default="", description="Service name put into the health request.")


class Probe(KubeModel):
    """How the kubelet finds out whether a container started, is ready, or is alive."""

    rules: ClassVar = (
        Rule(
            cel="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].exists_one(x, x)",
            holds=lambda probe: [probe.exec, probe.http_get, probe.tcp_socket, probe.grpc].count(None) == 3,
            message="a probe needs exactly one of exec, httpGet, tcpSocket and grpc",
        ),
    )

    exec: ExecAction | None = Field(default=None, description="Run a command.")
    http_get: HTTPGetAction | None = Field(default=None, description="Send an HTTP GET.")
    tcp_socket: TCPSocketAction | None = Field(default=None, description="Open a TCP connection.")
    grpc: GRPCAction | None = Field(default=None, description="Call the gRPC health service.")
    initial_delay_seconds: Int32 | None = Field(
        default=None, description="Seconds before the first attempt; 0 if absent."
    )
    timeout_seconds: Int32 | None = Field(
        default=None, description="Seconds an attempt may take; 1 if absent."
    )
    period_seconds: Int32 | None = Field(default=None, description="Seconds between attempts; 10 if absent.")
    success_threshold: Int32 | None = Field(
        default=None, description="Successes in a row that make a failed probe succeed; 1 if absent."
    )
    failure_threshold: Int32 | None = Field(
        default=None, description="Failures in a row that make the probe fail; 3 if absent."
    )
    termination_grace_period_seconds: Int64 | None = Field(
        default=None,
        description="Grace in seconds after this probe killed the container; the Pod's if absent.",
    )


class Toleration(KubeModel):
    """A taint that the Pods of the runtime accept."""

    key: str | None = Field(
        default=None, description="Key of the taint; absent with Exists means every taint."
    )
    operator: str | None = Field(default=None, description="Exists or Equal; Equal if absent.")
    value: str | None = Field(default=None, description="Value of the taint, for Equal.")
    effect: str | None = Field(
        default=None, description="NoSchedule, PreferNoSchedule or NoExecute; absent means all of them."
    )
    toleration_seconds: Int64 | None = Field(
        default=None, description="How long a NoExecute taint is tolerated; absent means for ever."
    )
