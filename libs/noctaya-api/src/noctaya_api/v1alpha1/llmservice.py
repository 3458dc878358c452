"""LLMService: one model, served at zero to many replicas."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from noctaya_api.names import MAX_LLMSERVICE_NAME_LENGTH
from noctaya_api.v1alpha1.base import KubeModel, ObjectMeta, Rule
from noctaya_api.v1alpha1.core import LocalObjectReference
from noctaya_api.v1alpha1.llmservice_delivery import Cache, Model
from noctaya_api.v1alpha1.llmservice_scaling import Endpoint, Scaling
from noctaya_api.v1alpha1.llmservice_status import LLMServiceStatus
from noctaya_api.v1alpha1.scalars import Int32, Quantity
from noctaya_api.v1alpha1.vendor import Vendor


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
