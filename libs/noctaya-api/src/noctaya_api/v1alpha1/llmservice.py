"""LLMService: one model, served at zero to many replicas."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from noctaya_api.names import MAX_LLMSERVICE_NAME_LENGTH
from noctaya_api.v1alpha1.base import KubeModel, ObjectMeta, Rule
from noctaya_api.v1alpha1.core import LocalObjectReference
from noctaya_api.v1alpha1.llmservice_scaling import Endpoint, Scaling
from noctaya_api.v1alpha1.llmservice_status import LLMServiceStatus
from noctaya_api.v1alpha1.scalars import Bool, Int32, NonEmpty, Quantity
from noctaya_api.v1alpha1.vendor import Vendor


class CacheStrategy(StrEnum):
    """Where downloaded weights are kept."""

    NODE_LOCAL_PVC = "NodeLocalPVC"
    HOST_PATH = "HostPath"
    SHARED_PVC = "SharedPVC"
    BAKED_IMAGE = "BakedImage"
    NONE = "None"


class InlineSource(KubeModel):
    """A model named by its URI."""

    rules: ClassVar = (
        Rule(
            cel="!has(self.secretRef) || self.uri.startsWith('oci://')",
            holds=lambda source: source.secret_ref is None or source.uri.startswith("oci://"),
            message="secretRef is only used with a uri that begins with oci:// in lower case",
        ),
        Rule(
            cel="!has(self.secretRef) || (has(self.secretRef.name) && size(self.secretRef.name) > 0)",
            holds=lambda source: source.secret_ref is None or source.secret_ref.name != "",
            message="secretRef.name must not be empty",
        ),
    )

    uri: NonEmpty = Field(
        description="Where the weights are: hf://org/name[@revision], huggingface://..., "
        "modelscope://org/name[@revision], pvc://claim[/path] or oci://registry/repository@sha256:digest."
    )
    secret_ref: LocalObjectReference | None = Field(
        default=None, description="Secret of type kubernetes.io/dockerconfigjson for a private OCI registry."
    )


class Model(KubeModel):
    """What is served."""

    rules: ClassVar = (
        Rule(
            cel="has(self.source) != (has(self.catalogRef) && size(self.catalogRef) > 0)",
            holds=lambda model: (model.source is not None) != bool(model.catalog_ref),
            message="exactly one of source and catalogRef must be given",
        ),
    )

    source: InlineSource | None = Field(default=None, description="The model, named by its URI.")
    catalog_ref: str | None = Field(
        default=None,
        description="Reserved for a later version; a service that uses it is reported as degraded.",
    )


class RuntimeSelector(KubeModel):
    """Chooses among the InferenceRuntimes of the cluster."""

    vendor: Annotated[list[Vendor], Field(min_length=1)] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Acceptable vendors, the preferred one first. Within a vendor the runtime with the "
        "highest priority "
        "is taken.",
    )


class RuntimeRef(KubeModel):
    """Which InferenceRuntime serves the model."""

    rules: ClassVar = (
        Rule(
            cel="(has(self.name) && size(self.name) > 0) != "
            "(has(self.selector) && has(self.selector.vendor) && size(self.selector.vendor) > 0)",
            holds=lambda ref: bool(ref.name) != bool(ref.selector and ref.selector.vendor),
            message="exactly one of name and selector.vendor must be given",
        ),
    )

    name: str | None = Field(default=None, description="Name of the InferenceRuntime to use.")
    selector: RuntimeSelector | None = Field(
        default=None, description="Conditions for the runtime, instead of a name."
    )
    args_override: list[str] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Arguments appended to those of the runtime; template actions are rendered.",
    )


class Fraction(KubeModel):
    """A part of an accelerator."""

    memory: Quantity | None = Field(default=None, description="Reserved: accelerator memory.")
    cores: Int32 | None = Field(default=None, description="Reserved: accelerator cores.")


class Resources(KubeModel):
    """What one backend replica gets."""

    accelerators: Annotated[Int32, Field(ge=0)] = Field(
        default=1, description="Whole accelerators per replica. Not used by runtimes of the vendor cpu."
    )
    fraction: Fraction | None = Field(
        default=None,
        description="Reserved for a later version; a service that uses it is reported as degraded.",
    )
    cpu: Quantity | None = Field(default=None, description="CPU request per replica; no limit is set.")
    memory: Quantity | None = Field(default=None, description="Memory per replica, request and limit.")


class Cache(KubeModel):
    """Where weights are kept between starts."""

    strategy: CacheStrategy = Field(
        default=CacheStrategy.NODE_LOCAL_PVC,
        description="NodeLocalPVC: a ReadWriteOnce claim. SharedPVC: a ReadWriteMany claim for replicas "
        "on several nodes. "
        "HostPath: a directory of the node. None: nothing is kept. BakedImage is reserved.",
    )
    size: Quantity | None = Field(default=None, description="Size of the claim; 50Gi if absent.")
    storage_class_name: str | None = Field(
        default=None, description="StorageClass of the claim; absent or empty means the cluster's default."
    )
    prewarm: Bool = Field(
        default_factory=bool,
        exclude_if=lambda value: not value,
        description="Download the weights once, ahead of the first start and without an accelerator. "
        "Off unless set; always on for oci:// models.",
    )
    retain: Bool = Field(
        default_factory=bool,
        exclude_if=lambda value: not value,
        description="Keep the claim, and so the weights, when the service is deleted. Off unless set.",
    )


class LLMServiceSpec(KubeModel):
    """What the user asks for."""

    model: Model = Field(description="The model to serve.")
    runtime: RuntimeRef = Field(description="The InferenceRuntime that serves it.")
    resources: Resources = Field(default=Resources(), description="Resources of one backend replica.")
    scaling: Scaling = Field(default=Scaling(), description="How many replicas run, and when.")
    cache: Cache = Field(default=Cache(), description="Where weights are kept between starts.")
    endpoint: Endpoint = Field(default=Endpoint(), description="The gateway that clients talk to.")
    image_pull_secrets: list[LocalObjectReference] = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Secrets for pulling the images of every Pod of the service.",
    )


_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


class LLMService(KubeModel):
    """A large language model behind an OpenAI-compatible endpoint, at zero replicas while nobody asks."""

    rules: ClassVar = (
        Rule(
            on_create=True,
            cel=f"self.metadata.name.size() <= {MAX_LLMSERVICE_NAME_LENGTH}",
            holds=lambda service: len(service.metadata.name) <= MAX_LLMSERVICE_NAME_LENGTH,
            message=f"metadata.name may have at most {MAX_LLMSERVICE_NAME_LENGTH} characters, because "
            f"names of Services "
            "are derived from it",
        ),
        Rule(
            on_create=True,
            cel="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            holds=lambda service: _NAME.fullmatch(service.metadata.name) is not None,
            message="metadata.name must begin with a lower-case letter, go on with lower-case letters, "
            "digits and dashes, "
            "and not end with a dash, because Services are named after it",
        ),
    )

    api_version: Literal["serving.noctaya.io/v1alpha1"] = "serving.noctaya.io/v1alpha1"
    kind: Literal["LLMService"] = "LLMService"
    metadata: ObjectMeta
    spec: LLMServiceSpec = Field(description="What the user asks for.")
    status: LLMServiceStatus | None = Field(default=None, description="What the operator reports.")

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the service; `default` when the manifest names none."""
        return self.metadata.namespace or "default"
