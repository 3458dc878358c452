"""What a gateway tells of its last activations at `/noctaya/activations`; the operator reads it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from noctaya_api.names import ACTIVATION_ID

LISTED: Final = 64
"""Most activations that a reader takes; gateways remember fewer."""


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[AwareDatetime, PlainSerializer(_text, when_used="json")]
"""RFC 3339 with milliseconds."""


class NotAnActivationList(ValueError):
    """Something that no gateway says."""


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore", validate_by_name=True)


class ListedActivation(_Document):
    """One activation at one gateway; what has not come is absent."""

    id: Annotated[str, Field(pattern=ACTIVATION_ID)] = Field(
        description="32 hex digits; the trace id, where the request that began it was traced"
    )
    traceparent: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="of that request; absent without tracing"
    )
    requested: Moment
    told: Moment | None = Field(default=None, description="KEDA or the aggregate scaler knew the demand")
    ready: Moment | None = None
    first_byte: Moment | None = Field(
        default=None, description="the first answer to a request that had waited began"
    )
    ended: Moment | None = Field(default=None, description="it was ready or given up")
    outcome: Annotated[str, Field(max_length=32)] | None = Field(
        default=None, description="ready, expired or failed; absent while it goes on"
    )

    def moved(self, by: timedelta) -> ListedActivation:
        """The same on a clock that is ahead of the gateway's by so much."""
        fields = ("requested", "told", "ready", "first_byte", "ended")
        times = {field: moment + by for field in fields if (moment := getattr(self, field)) is not None}
        return self.model_copy(update=times)


class ActivationList(_Document):
    """What a gateway remembers."""

    now: Moment = Field(description="the gateway's clock, from which all moments are")
    activations: Annotated[list[ListedActivation], Field(max_length=LISTED)] = Field(
        description="the newest first"
    )

    def to_json(self) -> bytes:
        """The wire form."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()


def parse_activation_list(body: bytes) -> ActivationList:
    """Check and read an answer. Raises NotAnActivationList."""
    try:
        return ActivationList.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NotAnActivationList(f"{where}: {first['msg']}") from error
