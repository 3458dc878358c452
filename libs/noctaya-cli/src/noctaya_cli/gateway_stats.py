"""Numbers of a running gateway, from its public `/metrics`."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import httpx
from noctaya_api import names

SAMPLE = re.compile(r"^noctaya_gateway_(pending|demand) (\S+)", re.MULTILINE)
MOMENT = re.compile(
    r'^noctaya_gateway_last_activation_timestamp_seconds\{moment="(\w+)"\} (\S+)', re.MULTILINE
)
TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class GatewayStats:
    """`demand`: what KEDA is told. `pending`: requests admitted now, waiting or in flight. `moments`: Unix
    times of the gateway's moments of the last activation (requested, ready, first_byte).
    """

    demand: int
    pending: int
    moments: Mapping[str, float]


class GatewayProbe:
    """Reads the numbers of one gateway at `base_url`."""

    def __init__(self, base_url: str) -> None:
        self._client = httpx.AsyncClient(base_url=base_url, timeout=TIMEOUT, trust_env=False, verify=False)  # noqa: S501

    async def stats(self) -> GatewayStats | None:
        """The numbers of this moment; None when the gateway doesn't answer."""
        try:
            response = await self._client.get(names.PATH_METRICS)
        except httpx.HTTPError:
            return None
        if response.status_code != httpx.codes.OK:
            return None
        return parse_stats(response.text)

    async def close(self) -> None:
        """Release the client."""
        await self._client.aclose()


def parse_stats(text: str) -> GatewayStats:
    """Read what is needed of the Prometheus text; a number that isn't there is 0."""
    samples = _numbers(SAMPLE.findall(text))
    return GatewayStats(
        demand=int(samples.get("demand", 0)),
        pending=int(samples.get("pending", 0)),
        moments=_numbers(MOMENT.findall(text)),
    )


def _numbers(pairs: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Those that are numbers one can count with."""
    found = {}
    for name, text in pairs:
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            found[name] = value
    return found
