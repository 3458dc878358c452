"""One running system for all tests here, and a Prometheus with the shipped alerts, sixty times as fast."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from noctaya_apiserver.client import Object, load_objects
from noctaya_monitoring.download import agent_address, downloading
from noctaya_monitoring.fleet import PAIRS, Fleet, Wanted
from noctaya_monitoring.pace import quickened
from noctaya_monitoring.prometheus import Prometheus
from noctaya_monitoring.scrape import jobs

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "observability"
FACTOR = 60.0
FACTORS = {"NoctayaActivationSlowerThanUsual": 240.0}
"""Its hour is the time between a usual cold start and one that is not: a quarter of a minute here."""
THRESHOLDS = {"NoctayaActivationSlow": ("> 180", "> 3")}
CERTIFICATE_DAYS = 13
KEY = "sk-of-the-tests"


TIMEOUT = 400.0
"""Seconds a test may take, with the start of everything; what it waits for has bounds of its own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """More time than other tests have."""
    for item in items:
        item.add_marker(pytest.mark.timeout(TIMEOUT))


def certificates() -> dict[str, bytes]:
    """What the Secret of a scaler's TLS holds, near its end."""
    authority = trustme.CA()
    end = datetime.now(UTC) + timedelta(days=CERTIFICATE_DAYS)
    leaf = authority.issue_cert("localhost", not_after=end)
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    return {
        "scaler-tls/tls.crt": chain,
        "scaler-tls/tls.key": leaf.private_key_pem.bytes(),
        "scaler-tls/ca.crt": authority.cert_pem.bytes(),
    }


def wanted() -> list[Wanted]:
    """The services, named after what happens to them."""
    tls = {"serverSecretName": "server", "authenticationRef": {"name": "client"}}
    return [
        Wanted(
            name="chat",
            spec={"endpoint": {"authentication": {"secretRef": {"name": "keys", "key": "keys"}}}},
            mounted={"client-auth/api-key": f"{KEY} name=batch\n"},
        ),
        Wanted(name="late"),
        Wanted(name="full", spec={"endpoint": {"maxQueue": 1}}),
        Wanted(name="deaf", spec={"scaling": {"activationTimeout": "6s"}}, listens=False),
        Wanted(
            name="sealed",
            spec={"scaling": {"externalScaler": {"tls": tls}}},
            mounted=certificates(),
            listens=False,
        ),
        Wanted(name="pair", namespace=PAIRS),
    ]


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The system; nobody listens to `deaf` and `sealed`."""
    folder = tmp_path_factory.mktemp("fleet")
    with Fleet(folder, wanted=wanted(), agent=agent_address()) as running:
        full = running.services["full"].keda
        assert full is not None
        full.load_seconds = None
        yield running


@pytest.fixture(scope="session")
def rules() -> dict[str, Any]:
    """The alerts as they are shipped."""
    found: dict[str, Any] = yaml.safe_load((EXAMPLE / "rules.yaml").read_text())["spec"]
    return found


@pytest.fixture(scope="session")
def prometheus(
    fleet: Fleet, rules: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Prometheus with the shipped ServiceMonitors and alerts."""
    quick = quickened(rules, factor=FACTOR, factors=FACTORS, thresholds=THRESHOLDS)
    monitors: list[Object] = load_objects(EXAMPLE / "servicemonitors.yaml")
    found = jobs(monitors, found=fleet.discovery.file, places=fleet.places())
    with Prometheus(tmp_path_factory.mktemp("prometheus"), jobs=found, rules=quick) as running:
        yield running


@pytest.fixture(scope="session")
def download(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of an agent that works for the service `heavy` and gets no weights: its hub sends none."""
    folder = tmp_path_factory.mktemp("download")
    with downloading(fleet, folder, service="heavy", size=4 << 20, effect={"stall_after": 0}) as url:
        yield url
