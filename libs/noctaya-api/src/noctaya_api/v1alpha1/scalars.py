"""The scalar types of the API: durations, quantities, bounded integers, times, label maps."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
)
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from noctaya_api.duration import parse_duration_ns
from noctaya_api.quantity import QUANTITY_PATTERN, parse_quantity

VALIDATIONS: Final = "x-kubernetes-validations"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_QUANTITY_MESSAGE: Final = "must be a quantity that is not negative, such as 500m or 16Gi"


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


def _rfc3339(text: str) -> str:
    if _RFC3339.fullmatch(text) is None:
        raise ValueError("must be a time such as 2026-11-30T07:00:00Z")
    datetime.fromisoformat(text)
    return text


_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
Timestamp = Annotated[str, AfterValidator(_rfc3339), Field(json_schema_extra=_format("date-time"))]


def _without_nulls(value: Any) -> Any:
    # The API server drops nulls in maps as it does in objects.
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    return value


StringMap = Annotated[dict[str, str], BeforeValidator(_without_nulls)]
