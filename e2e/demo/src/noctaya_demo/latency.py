"""What the gateway adds to a warm request: the same small request, directly and through it, by turns."""

import http.client
import statistics
import time
from dataclasses import dataclass

PATH = "/v1/models"
ROUNDS = 300
WARM_UP = 20


@dataclass(frozen=True, slots=True)
class Latency:
    """Medians over `ROUNDS` requests on one connection each, in milliseconds."""

    direct: float
    gateway: float

    @property
    def added(self) -> float:
        """What the gateway costs, in milliseconds."""
        return self.gateway - self.direct


def measure(*, backend_port: int, gateway_port: int) -> Latency:
    """Alternate between both, so that a busy moment of the machine hits both.

    Raises OSError or HTTPException.
    """
    direct = http.client.HTTPConnection("127.0.0.1", backend_port, timeout=10)
    gateway = http.client.HTTPConnection("127.0.0.1", gateway_port, timeout=10)
    try:
        for _ in range(WARM_UP):
            once(direct)
            once(gateway)
        pairs = [(once(direct), once(gateway)) for _ in range(ROUNDS)]
    finally:
        direct.close()
        gateway.close()
    return Latency(
        direct=statistics.median(pair[0] for pair in pairs) * 1000,
        gateway=statistics.median(pair[1] for pair in pairs) * 1000,
    )


def once(connection: http.client.HTTPConnection) -> float:
    """Seconds one request takes."""
    began = time.perf_counter()
    connection.request("GET", PATH)
    response = connection.getresponse()
    response.read()
    if response.status != http.client.OK:
        raise http.client.HTTPException(f"GET {PATH}: status {response.status}")
    return time.perf_counter() - began
