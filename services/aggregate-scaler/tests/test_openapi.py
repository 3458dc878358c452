"""The served OpenAPI document against the served behaviour: schemathesis over real sockets.

The scaler runs in a thread with its own loop, because schemathesis calls it synchronously.
"""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from noctaya_aggregate_scaler.app import AggregateScaler
from noctaya_aggregate_scaler.settings import ScalerSettings
from noctaya_api.demand.report import MAX_MEMBER_ID_BYTES
from noctaya_api.process.lifecycle import Stop
from schemathesis import GenerationMode

TOKEN = "t" * 43
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running scaler's base URL; it takes any number of members."""
    token_file: Path = tmp_path_factory.mktemp("auth") / "token"
    token_file.write_text(TOKEN)
    scaler_settings = ScalerSettings(
        aggregator_listen_addr="127.0.0.1:0",
        scaler_listen_addr="127.0.0.1:0",
        demand_auth_token_file=token_file,
        max_gateway_members=10**6,
    )
    served = threading.Event()
    running: dict[str, Any] = {}

    async def main() -> None:
        scaler, stop = AggregateScaler(scaler_settings), Stop()
        await scaler.start()
        running.update(port=scaler.http_port, stop=stop, loop=asyncio.get_running_loop())
        served.set()
        await stop.wait()
        await scaler.stop()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert served.wait(60)
    yield f"http://127.0.0.1:{running['port']}"
    running["loop"].call_soon_threadsafe(running["stop"].trigger)
    thread.join(60)


@pytest.fixture(scope="module")
def document(url: str) -> Any:
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


def operations(document: Any) -> dict[str, Any]:
    return {found.path: found for found in (result.ok() for result in document.get_all_operations())}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/v1/demand"])
def test_what_the_document_allows_is_accepted_and_answered_as_described(document: Any, path: str) -> None:
    exercise(operations(document)[path], GenerationMode.POSITIVE)


def test_what_the_document_forbids_is_refused_as_described(document: Any) -> None:
    exercise(operations(document)["/v1/demand"], GenerationMode.NEGATIVE)


def exercise(operation: Any, mode: GenerationMode) -> None:
    @settings(
        max_examples=60,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answer_is_described(case: Any) -> None:
        assume(not is_beyond_a_schema(case.body))
        case.call_and_validate(headers=HEADERS)

    answer_is_described()


def is_beyond_a_schema(body: Any) -> bool:
    """What JSON Schema accepts and the contract does not, or the other way round.

    A schema counts a member id's characters where the contract counts bytes, and takes 5.0 for an integer.
    """
    if not isinstance(body, dict):
        return False
    member = body.get("memberID")
    if isinstance(member, str) and len(member.encode(errors="surrogatepass")) > MAX_MEMBER_ID_BYTES:
        return True
    return any(isinstance(value, float) and value.is_integer() for value in body.values())


def test_the_document_describes_the_report_and_its_credential(document: Any) -> None:
    raw = document.raw_schema
    operation = raw["paths"]["/v1/demand"]["post"]
    assert set(operation["responses"]) == {"204", "400", "401", "408", "429", "503"}
    assert operation["security"] == [{"reportToken": []}]
    report = raw["components"]["schemas"]["DemandReport"]
    assert set(report["properties"]) == {"memberID", "sequence", "demand"}
    assert report["additionalProperties"] is False
    assert set(report["required"]) == {"memberID", "sequence", "demand"}
