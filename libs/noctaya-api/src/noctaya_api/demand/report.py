"""The report a gateway sends to the aggregate scaler: `POST /v1/demand` of contracts 4.2.

The wire form is checked strictly (no unknown field, no trailing data, integers only) but keys match in any
case, as the Go services of the v0.4 alpha accept and send them.
"""

from typing import Annotated, Any, Final

import pydantic_core
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

MAX_MEMBER_ID_BYTES: Final = 512
"""Longest member id, in bytes of UTF-8 (contracts 4.5)."""
MAX_BODY_BYTES: Final = 64 * 1024
"""Longest report body (contracts 4.5)."""
MIN_TOKEN_BYTES: Final = 32
"""Shortest report token after trimming (contracts 3.1 and 4.2)."""
INT64_MAX: Final = 2**63 - 1
UINT64_MAX: Final = 2**64 - 1

_KEYS: Final = {"memberid": "memberID", "sequence": "sequence", "demand": "demand"}


class InvalidReport(ValueError):
    """The body is not a report; the message names the field where there is one and quotes no value."""


def _fits(member_id: str) -> str:
    if len(member_id.encode()) > MAX_MEMBER_ID_BYTES:
        raise ValueError(f"longer than {MAX_MEMBER_ID_BYTES} bytes")
    return member_id


class DemandReport(BaseModel):
    """One gateway's complete demand at one moment."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_name=True)

    member_id: Annotated[str, AfterValidator(_fits)] = Field(
        alias="memberID",
        min_length=1,
        max_length=MAX_MEMBER_ID_BYTES,
        description="Names one gateway process for its lifetime; at most 512 bytes of UTF-8.",
    )
    sequence: int = Field(
        ge=1, le=UINT64_MAX, description="Grows with every report of the member; an older one is ignored."
    )
    demand: int = Field(
        ge=0,
        le=INT64_MAX,
        description="Effective demand; 0 withdraws, more than the per-member bound counts as the bound.",
    )

    def to_json(self) -> bytes:
        """The wire form."""
        return self.model_dump_json(by_alias=True).encode()


def parse_report(body: bytes) -> DemandReport:
    """Check and read a report.

    Raises:
        InvalidReport: longer than 64 KiB, not one JSON object, an unknown or missing field, or a value out of
        range.
    """
    if len(body) > MAX_BODY_BYTES:
        raise InvalidReport(f"body longer than {MAX_BODY_BYTES} bytes")
    try:
        document: Any = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidReport("body is not one JSON document") from error
    if not isinstance(document, dict):
        raise InvalidReport("body is not a JSON object")
    fields = {_KEYS.get(key.lower(), key): value for key, value in document.items()}
    try:
        return DemandReport.model_validate(fields, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = first["loc"][0] if first["type"] != "extra_forbidden" else "unknown field"
        raise InvalidReport(f"{field}: {first['msg']}") from error
