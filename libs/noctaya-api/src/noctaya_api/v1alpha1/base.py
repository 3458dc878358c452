"""What every API model shares: configuration, cross-field rules, scalar types, object metadata.

The models are the single source of the API. Python code validates with them, and `noctaya_api.crd` turns
them into the schemas that the API server enforces. So everything a schema can say is said once: a field's
description, its bounds, its default, and - as a `Rule` - each condition that spans fields, written in CEL
for the API server and in Python beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from noctaya_api.duration import parse_duration_ns
from noctaya_api.quantity import QUANTITY_PATTERN, parse_quantity

VALIDATIONS: Final = "x-kubernetes-validations"
MAP_TYPE: Final = "x-kubernetes-map-type"
LIST_TYPE: Final = "x-kubernetes-list-type"
_QUANTITY_MESSAGE: Final = "must be a quantity that is not negative, such as 500m or 16Gi"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"


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


def int_or_string_schema(message: str) -> CoreSchema:
    """Validator of the int-or-string type of Kubernetes, with one message for both branches."""
    return core_schema.union_schema(
        [core_schema.str_schema(strict=True), core_schema.int_schema(strict=True)],
        custom_error_type="int_or_string",
        custom_error_message=message,
    )


class GoDuration(str):
    """A Go duration as text, with its value at hand."""

    __slots__ = ()

    def __new__(cls, text: str) -> GoDuration:
        """Raises ValueError when the text is not a duration."""
        parse_duration_ns(text)
        return super().__new__(cls, text)

    @property
    def nanoseconds(self) -> int:
        """Exact value."""
        return parse_duration_ns(self)

    @property
    def seconds(self) -> float:
        """Value in seconds."""
        return self.nanoseconds / 1e9

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Text that must parse; the schema is a plain string, as Kubernetes has no format for Go
        durations."""
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


class Quantity(str):
    """A Kubernetes quantity as text, with its value at hand. An integer is kept as its digits."""

    __slots__ = ()

    def __new__(cls, value: str | int) -> Quantity:
        """Raises ValueError when the value is not a quantity."""
        parse_quantity(value)
        return super().__new__(cls, value)

    @property
    def amount(self) -> Decimal:
        """Exact value: bytes, cores or devices."""
        return parse_quantity(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A string or an integer, not negative. A float is refused: the API server refuses it too."""
        text = int_or_string_schema("must be a quantity: text such as 500m or 16Gi, or a whole number")
        return core_schema.no_info_after_validator_function(cls._not_negative, text)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema Kubernetes itself uses for quantities, and the part of the grammar that it lacks."""
        rule = {
            "rule": "isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",
            "message": _QUANTITY_MESSAGE,
        }
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            INT_OR_STRING: True,
            VALIDATIONS: [rule],
        }

    @classmethod
    def _not_negative(cls, value: str | int) -> Quantity:
        quantity = cls(value)
        if quantity.amount < 0:
            raise ValueError(_QUANTITY_MESSAGE)
        return quantity


class Divisor(Quantity):
    """A quantity in an unbounded list, where a rule would cost more than the API server allows."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of a quantity without the rule."""
        result = super().__get_pydantic_json_schema__(schema, handler)
        del result[VALIDATIONS]
        return result


def _format(name: str) -> JsonDict:
    return {"format": name}


Int32 = Annotated[int, Strict(), Field(ge=-(2**31), le=2**31 - 1, json_schema_extra=_format("int32"))]
Int64 = Annotated[int, Strict(), Field(ge=-(2**63), le=2**63 - 1, json_schema_extra=_format("int64"))]
Bool = Annotated[bool, Strict()]
NonEmpty = Annotated[str, Field(min_length=1)]


class ObjectMeta(KubeModel):
    """The metadata that Noctaya reads; the API server validates the rest."""

    name: NonEmpty = Field(description="Name of the object.")
    namespace: str | None = Field(
        default=None, description="Namespace of the object; absent means the current one."
    )
    labels: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    annotations: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
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
    status: Annotated[str, Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})] = Field(
        description="Whether the aspect holds: True, False or Unknown."
    )
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = Field(description="One CamelCase word for programs that says why the status is what it is.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="The same for people.")
    last_transition_time: Annotated[str, Field(json_schema_extra=_format("date-time"))] = Field(
        description="When the status last changed."
    )
    observed_generation: Annotated[Int64, Field(ge=0)] | None = Field(
        default=None, description="The metadata.generation this condition was computed from."
    )
