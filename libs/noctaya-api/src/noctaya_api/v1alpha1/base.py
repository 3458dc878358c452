"""What every API model shares: configuration, cross-field rules, metadata, conditions.

The models are the single source of the API. Python code validates with them, and `noctaya_api.crd` turns
them into the schemas that the API server enforces. So everything a schema can say is said once: a field's
description, its bounds, its default, and - as a `Rule` - each condition that spans fields, written in CEL
for the API server and in Python beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from noctaya_api.conditions import ConditionStatus
from noctaya_api.v1alpha1.scalars import VALIDATIONS, Int64, NonEmpty, StringMap, Timestamp

MAP_TYPE: Final = "x-kubernetes-map-type"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A condition on one object of the API, in the two languages that enforce it."""

    cel: str
    """CEL expression over `self` that is true for a valid object."""
    holds: Callable[[Any], bool]
    """The same over the Python model."""
    message: str
    """What the user reads when the rule is broken."""

    on_create: bool = False
    """Whether the API server asks it of new objects only. A rule on what can't change afterwards must not
    stop the operator from writing the status of an object that was stored before the rule existed."""

    def schema(self) -> dict[str, str | bool]:
        """Entry of `x-kubernetes-validations`."""
        if self.on_create:
            cel = f"oldSelf.hasValue() || {self.cel}"
            return {"rule": cel, "message": self.message, "optionalOldSelf": True}
        return {"rule": self.cel, "message": self.message}


class KubeModel(BaseModel):
    """Base of all API models: immutable, camelCase on the wire, unknown fields pruned, nulls read as
    absent."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    schema_extra: ClassVar[dict[str, Any]] = {}
    """Kubernetes schema extensions of the object itself."""

    @model_validator(mode="before")
    @classmethod
    def _nulls_are_absent(cls, value: Any) -> Any:
        # The API server drops nulls before it applies defaults.
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None}
        return value

    @model_validator(mode="after")
    def _rules_hold(self) -> KubeModel:
        broken = [rule.message for rule in self.rules if not rule.holds(self)]
        if broken:
            raise PydanticCustomError("rule", "{broken}", {"broken": "; ".join(broken)})
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Schema of the model with its rules and Kubernetes extensions."""
        result = handler.resolve_ref_schema(handler(schema))
        result.update(cls.schema_extra)
        if cls.rules:
            result[VALIDATIONS] = [rule.schema() for rule in cls.rules]
        return result

    def manifest(self) -> dict[str, Any]:
        """The object as the API server stores it: JSON values, defaults filled in, absent fields left out."""
        return self.model_dump(mode="json", exclude_none=True)


class ObjectMeta(KubeModel):
    """The metadata that Noctaya reads; the API server validates the rest."""

    name: NonEmpty = Field(description="Name of the object.")
    namespace: str | None = Field(
        default=None, description="Namespace of the object; absent means the current one."
    )
    labels: StringMap = Field(default_factory=dict, exclude_if=lambda value: not value)
    annotations: StringMap = Field(default_factory=dict, exclude_if=lambda value: not value)
    uid: str | None = None
    generation: Int64 | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class Condition(KubeModel):
    """One aspect of an object's state, in the form all Kubernetes APIs share."""

    type: Annotated[
        str,
        Field(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ] = Field(description="Name of the aspect, in CamelCase.")
    status: ConditionStatus = Field(description="Whether the aspect holds: True, False or Unknown.")
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = Field(description="One CamelCase word for programs that says why the status is what it is.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="The same for people.")
    last_transition_time: Timestamp = Field(description="When the status last changed.")
    observed_generation: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="The metadata.generation this condition was computed from."
    )
